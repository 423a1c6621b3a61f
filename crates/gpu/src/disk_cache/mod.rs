//! Files that one process leaves for the next ones, for one adapter and driver.

mod file;
mod folder;

pub use file::{CacheFile, FileIdentity, FileKind, checksum};
pub use folder::folder;
