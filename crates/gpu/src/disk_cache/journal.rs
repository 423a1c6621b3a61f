//! A journal of one process: lines that the next processes find if this one ends before it has
//! closed the journal.
//!
//! A journal is a file beside its [`CacheFile`]. Its process holds a lock of the operating system
//! on it, which ends with the process, however it ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::file::CacheFile;
use super::reader;

/// The ending of the names of journals.
const ENDING: &str = ".journal";
/// The largest size in bytes of a journal that is read: a hundred thousand lines.
const MOST_BYTES: u64 = 16 << 20;
/// The number of journals that one process may have beside a file.
const MOST_JOURNALS: u32 = 1_000;

/// The journal of this process beside a file of the cache. Its own file is made by the first line.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// The first part of the names of all journals beside the file.
    prefix: String,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Unopened,
    Open {
        file: File,
        path: PathBuf,
        /// A forked process has its parent's journal, and must not remove it.
        process: u32,
    },
    Closed,
}

impl CacheFile {
    /// The journal of this process beside the file.
    pub fn journal(&self) -> Journal {
        let stem = self.path().file_stem().unwrap_or_default().to_string_lossy();
        let folder = self.path().parent().unwrap_or(Path::new(".")).to_path_buf();
        Journal { folder, prefix: format!("{stem}-"), state: Mutex::new(State::Unopened) }
    }
}

impl Journal {
    /// Appends a line in one write. A line that cannot be written is left out, and so are all later
    /// ones.
    pub fn append(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Unopened) {
            *state = match self.open() {
                Ok((file, path)) => State::Open { file, path, process: std::process::id() },
                Err(error) => {
                    tracing::debug!("no journal in {}: {error}", self.folder.display());
                    State::Closed
                }
            };
        }
        if let State::Open { file, path, .. } = &mut *state
            && let Err(error) = file.write_all(format!("{line}\n").as_bytes())
        {
            tracing::debug!("the journal {} ends: {error}", path.display());
            *state = State::Closed;
        }
    }

    /// Removes the journal. Later lines are left out.
    pub fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Open { file, path, process } = std::mem::replace(&mut *state, State::Closed)
            && process == std::process::id()
        {
            remove(file, &path);
        }
    }

    /// Removes the journals beside the file whose processes have ended without closing them, and
    /// returns their contents.
    pub fn take_abandoned(&self) -> Vec<String> {
        let ours = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&self.prefix) && name.ends_with(ENDING)
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(ours).filter_map(|path| take(&path)).collect()
    }

    /// Makes the file of this process.
    fn open(&self) -> io::Result<(File, PathBuf)> {
        fs::create_dir_all(&self.folder)?;
        // Processes in containers often have the same number.
        for number in 0..MOST_JOURNALS {
            let path = self.folder.join(format!("{}{}-{number}{ENDING}", self.prefix, std::process::id()));
            match open_locked(&path, fs::OpenOptions::new().write(true).create_new(true)) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there are too many"))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

/// The content of a journal whose process has ended, which is removed; `None` for others.
fn take(path: &Path) -> Option<String> {
    // A journal that is empty is being made, or being removed.
    let sound = |metadata: &fs::Metadata| reader::check(metadata, MOST_BYTES).is_ok() && metadata.len() > 0;
    fs::symlink_metadata(path).ok().filter(sound)?;
    let file = open_locked(path, fs::OpenOptions::new().read(true).write(true)).ok()?;
    let content = io::read_to_string(&file).unwrap_or_default();
    remove(file, path);
    Some(content).filter(|content| !content.is_empty())
}

/// Removes a journal that this process holds the lock of. It is emptied first: a process that has
/// opened it meanwhile finds nothing.
fn remove(file: File, path: &Path) {
    let emptied = file.set_len(0);
    drop(file);
    if let Err(error) = emptied.and_then(|()| fs::remove_file(path)) {
        tracing::debug!("the journal {} is not removed: {error}", path.display());
    }
}

/// Opens a file, and takes its lock until it is closed.
///
/// # Errors
/// Another process has the lock, or the operating system's error.
#[cfg(unix)]
fn open_locked(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    // The values on Linux, and on systems that descend from BSD.
    const EXCLUSIVE_NOW: i32 = 2 | 4;
    unsafe extern "C" {
        /// Fails for a number that is no open file, and touches no memory of the caller.
        safe fn flock(file: i32, operation: i32) -> i32;
    }
    let file = options.mode(0o600).open(path)?;
    if flock(file.as_raw_fd(), EXCLUSIVE_NOW) == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// Opens a file, which no other process can open until it is closed.
#[cfg(windows)]
fn open_locked(path: &Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    options.share_mode(0).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_cache::tests::{KIND, folder, identity};

    #[test]
    fn a_journal_is_found_when_its_process_has_ended_without_closing_it() {
        let folder = folder("journal");
        let file = CacheFile::new(identity(), &folder, KIND);
        let [one, other] = [file.journal(), file.journal()];
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "nothing was written");
        one.append("begin a");
        one.append("end a");
        other.append("begin b");
        assert_eq!(file.journal().take_abandoned(), [""; 0], "their process lives");
        // What a process leaves that ends by force: files without locks.
        let lines = ["begin c\n", "begin d\nend d\n"];
        for (i, line) in lines.into_iter().enumerate() {
            fs::write(folder.join(format!("{}{i}-0{ENDING}", one.prefix)), line).expect("written");
        }
        fs::write(folder.join(format!("others-1-0{ENDING}")), "another adapter's").expect("written");
        let mut found = file.journal().take_abandoned();
        found.sort_unstable();
        assert_eq!(found, lines);
        assert_eq!(file.journal().take_abandoned(), [""; 0], "they are found once");
        one.close();
        one.append("begin e");
        drop(other);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "another adapter's");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn without_a_folder_nothing_is_written() {
        let folder = folder("no-journal");
        let file = CacheFile::new(identity(), &folder.join("file"), KIND);
        fs::write(folder.join("file"), "no folder").expect("written");
        let journal = file.journal();
        journal.append("begin a");
        assert_eq!(journal.take_abandoned(), [""; 0]);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
