//! What is kept on disk from one process to the next, of one adapter and driver.

mod file;
mod folder;

pub use file::{CacheFile, FileIdentity, FileKind, checksum};
pub use folder::folder;
