//! A file of the disk cache.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::identity::{FileIdentity, FileKind};
use super::layout::{decode, encode};
use super::reader::read_own;
use super::writer::write;
use crate::error::Error;

/// A file of one adapter and driver. It need not exist yet.
#[derive(Debug, Clone)]
pub struct CacheFile {
    path: PathBuf,
    identity: FileIdentity,
    kind: FileKind,
}

impl CacheFile {
    /// The file of this kind and identity in `folder`.
    pub fn new(identity: FileIdentity, folder: &Path, kind: FileKind) -> Self {
        Self { path: folder.join(identity.file_name(kind)), identity, kind }
    }

    /// The adapter and the driver that the file belongs to.
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// The content, if the file is sound. Any other file at this path is ignored, with one warning.
    pub fn read(&self) -> Option<Vec<u8>> {
        let file = match read_own(&self.path, self.kind.most_bytes) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.warn_once(&format!("{error}; it is not read"));
                return None;
            }
        };
        let content = decode(self.kind, &self.identity, file);
        if content.is_none() {
            self.warn_once("it is damaged, or another driver's or version's; it is not read");
        }
        content
    }

    /// Logs a warning about the file, once per process and path.
    pub fn warn_once(&self, what: &str) {
        static SAID: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&self.path) {
            tracing::warn!("the cache of {}, {}: {what}", self.kind.name, self.path.display());
            said.push(self.path.clone());
        }
    }

    /// Replaces the file: a concurrent reader, or a reader after a crash of the writer, finds the
    /// old file or the new one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, content: &[u8]) -> Result<(), Error> {
        write(&self.path, self.kind.name, &encode(self.kind, &self.identity, content))
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
