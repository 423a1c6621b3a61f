//! Files that one process writes for the next ones, for one adapter and driver.
//!
//! A driver may crash on a pipeline cache that it did not write. So a file names the adapter, the
//! driver and the version of its writer, and has checksums ([`layout`]); it is used only if it is
//! exactly as it was written, belongs to this user ([`reader`]), and was replaced as a whole
//! ([`writer`]).

mod file;
mod folder;
mod identity;
mod journal;
mod layout;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use file::CacheFile;
pub use folder::folder;
pub use identity::{FileIdentity, FileKind};
pub use journal::Journal;
pub use layout::checksum;
