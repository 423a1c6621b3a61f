//! Replaces files so that readers find the old file or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Error;

/// The age after which a temporary file was left by a process that was killed.
pub(super) const ABANDONED: Duration = Duration::from_secs(600);
/// The number of attempts to replace a file on Windows, a hundredth of a second apart.
const REPLACE_ATTEMPTS: usize = 300;

/// Writes a file of a kind through a temporary file and a rename: a concurrent reader, or a reader
/// after a crash of the writer, finds the old file or the new one.
pub(super) fn write(path: &Path, kind: &str, bytes: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, &e))?;
    remove_abandoned(directory, kind);
    let temporary =
        path.with_extension(format!("{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let result = create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(|e| Error::io(&temporary, &e))
        .and_then(|()| replace(&temporary, path).map_err(|e| Error::io(path, &e)));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Creates a file that only this user may write.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Renames `from` to `to`. Windows may refuse while another process reads or replaces the file,
/// which takes a moment.
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut left = if cfg!(windows) { REPLACE_ATTEMPTS } else { 1 };
    loop {
        left -= 1;
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && left > 0 => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Removes temporary files of processes that were killed while they wrote.
fn remove_abandoned(directory: &Path, kind: &str) {
    let ours = |name: &std::ffi::OsStr| {
        name.to_str()
            .and_then(|name| name.strip_prefix(kind))
            .is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".tmp"))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed().unwrap_or_default());
        if ours(&entry.file_name()) && age.is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
