//! Reads files that a driver may trust.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The number of attempts to open a file that other processes replace at the same time.
const ATTEMPTS: usize = 16;

/// Reads a regular file that belongs to this user and that no other user may write: a driver trusts
/// its own cache. Other kinds of files could block the start (a FIFO) or fill the memory (a link to
/// an endless file).
pub(super) fn read_own(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    for _ in 0..ATTEMPTS {
        // The metadata of the link itself, if the path is a link.
        let named = fs::symlink_metadata(path)?;
        check(&named, most_bytes)?;
        let file = open(path)?;
        let opened = file.metadata()?;
        check(&opened, most_bytes)?;
        // Another process may have replaced the file in between, for example with its pipelines.
        if is_same(&named, &opened) {
            let mut bytes = Vec::with_capacity(opened.len() as usize);
            file.take(most_bytes).read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    Err(io::Error::other("it is replaced again and again while it is opened"))
}

/// Fails for a file that must not be read.
pub(super) fn check(metadata: &fs::Metadata, most_bytes: u64) -> io::Result<()> {
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > most_bytes {
        return Err(io::Error::other(format!("it has {} bytes, and at most {most_bytes} are read", metadata.len())));
    }
    check_owner(metadata)
}

#[cfg(unix)]
fn check_owner(metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    unsafe extern "C" {
        /// Always succeeds, and touches no memory of the caller.
        safe fn geteuid() -> u32;
    }
    if metadata.uid() != geteuid() {
        return Err(io::Error::other("it is another user's"));
    }
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(io::Error::other("others may write to it"));
    }
    Ok(())
}

/// Windows gives files the access list of their folder, and the folder is the user's own.
#[cfg(not(unix))]
fn check_owner(_: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Opens a file for reading, without waiting for a writer if it is a FIFO.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // The value on every Linux with Vulkan, and on systems that descend from BSD.
    const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 4 };
    fs::OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    (a.len(), a.created().ok()) == (b.len(), b.created().ok())
}
