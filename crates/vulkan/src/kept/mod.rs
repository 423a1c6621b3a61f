//! What is kept on disk from one process to the next, of one adapter and driver.

mod file;
mod folder;

pub use file::KeptFile;

pub(crate) use file::{Identity, Kind, checksum};
pub(crate) use folder::folder;
