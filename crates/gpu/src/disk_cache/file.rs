//! A file of the disk cache.
//!
//! A file is a header of 64 bytes and the content. The header names the adapter and the driver, and
//! has the content's length and checksum. A driver may crash on a pipeline cache that it did not
//! write, so a file is used only if it is exactly what was written for this driver.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic and format version |
//! | 8..12, 12..16, 16..20 | vendor, device, driver version |
//! | 20..24 | the writer's version; 0 if it does not matter |
//! | 24..40 | the driver's cache UUID |
//! | 40..48 | length of the content |
//! | 48..56 | checksum of the content |
//! | 56..64 | checksum of bytes 0..56 |

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;

const HEADER: usize = 64;
/// A temporary file that was not written to for this long was left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(600);

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    /// The first part of the file's name, which messages use too.
    pub name: &'static str,
    /// Its first bytes.
    pub magic: [u8; 8],
    /// The writer's version. A file of another version is not read.
    pub version: u32,
    /// The largest size in bytes. A larger file is not read.
    pub most_bytes: u64,
}

/// The adapter and the driver that a file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    /// The vendor's id.
    pub vendor: u32,
    /// The vendor's device id.
    pub device: u32,
    /// The driver's version.
    pub driver: u32,
    /// The UUID of the driver's pipeline cache.
    pub uuid: [u8; 16],
}

impl FileIdentity {
    fn file_name(&self, kind: FileKind) -> String {
        let uuid: String = self.uuid.iter().map(|b| format!("{b:02x}")).collect();
        format!("{}-{:04x}-{:04x}-{:08x}-{uuid}.bin", kind.name, self.vendor, self.device, self.driver)
    }
}

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
        let mut bytes = match read_own(&self.path, self.kind.most_bytes) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.warn_once(&format!("{error}; it is not read"));
                return None;
            }
        };
        if !is_sound(&bytes, self.kind, &self.identity) {
            self.warn_once("it is damaged, or another driver's or version's; it is not read");
            return None;
        }
        bytes.drain(..HEADER);
        Some(bytes)
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

    /// Writes the file through a temporary file and a rename: a concurrent reader, or a reader
    /// after a crash of the writer, finds the old file or the new one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, content: &[u8]) -> Result<(), Error> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let path = &self.path;
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(|e| Error::io(directory, &e))?;
        remove_abandoned(directory, self.kind.name);
        let temporary =
            path.with_extension(format!("{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
        let written = create(&temporary)
            .and_then(|mut file| {
                file.write_all(&encode(self.kind, &self.identity, content))?;
                file.sync_all()
            })
            .map_err(|e| Error::io(&temporary, &e))
            .and_then(|()| replace(&temporary, path).map_err(|e| Error::io(path, &e)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// How often a file is opened again that other processes replace at the same time.
const ATTEMPTS: usize = 16;
/// How often Windows is asked to replace a file, a hundredth of a second apart.
const REPLACE_ATTEMPTS: usize = 300;

/// Reads a regular file that belongs to this user and that nobody else may write: a driver trusts a
/// cache that it wrote. Other kinds of files could block the start (a FIFO) or fill the memory (a
/// link to an endless file).
fn read_own(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
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
fn check(metadata: &fs::Metadata, most_bytes: u64) -> io::Result<()> {
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

fn encode(kind: FileKind, identity: &FileIdentity, blob: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + blob.len());
    file.extend_from_slice(&kind.magic);
    file.extend_from_slice(&identity.vendor.to_le_bytes());
    file.extend_from_slice(&identity.device.to_le_bytes());
    file.extend_from_slice(&identity.driver.to_le_bytes());
    file.extend_from_slice(&kind.version.to_le_bytes());
    file.extend_from_slice(&identity.uuid);
    file.extend_from_slice(&(blob.len() as u64).to_le_bytes());
    file.extend_from_slice(&checksum(blob).to_le_bytes());
    let head = checksum(&file);
    file.extend_from_slice(&head.to_le_bytes());
    file.extend_from_slice(blob);
    file
}

/// Whether the file is the result of [`encode`] for this identity.
fn is_sound(file: &[u8], kind: FileKind, identity: &FileIdentity) -> bool {
    let Some((header, blob)) = file.split_at_checked(HEADER) else {
        return false;
    };
    if encode(kind, identity, &[])[..40] != header[..40] {
        return false;
    }
    let word = |at: usize| header[at..at + 8].iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
    word(40) == blob.len() as u64 && word(56) == checksum(&header[..56]) && word(48) == checksum(blob)
}

/// A multiplicative hash, eight bytes a step. It detects damage, not forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(PRIME);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = step(PRIME, bytes.len() as u64);
    for word in words {
        hash = step(hash, u64::from_le_bytes(*word));
    }
    rest.iter().fold(hash, |hash, &byte| step(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: FileKind = FileKind { name: "pipelines", magic: *b"TDMLPC\x00\x01", version: 0, most_bytes: 1 << 30 };

    fn identity() -> FileIdentity {
        FileIdentity { vendor: 0x10DE, device: 0x2330, driver: 7, uuid: [3; 16] }
    }

    fn cache_file(path: &Path) -> CacheFile {
        CacheFile { path: path.to_owned(), identity: identity(), kind: KIND }
    }

    /// A folder of its own for a test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("torch-dml-kept-file-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn blob() -> Vec<u8> {
        sized_blob(1003)
    }

    fn sized_blob(bytes: u32) -> Vec<u8> {
        (0..bytes).map(|i| i as u8).collect()
    }

    #[test]
    fn what_was_written_is_sound() {
        let file = encode(KIND, &identity(), &blob());
        assert!(is_sound(&file, KIND, &identity()));
    }

    #[test]
    fn truncated_files_are_refused() {
        let file = encode(KIND, &identity(), &blob());
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length], KIND, &identity()), "{length} bytes");
        }
        let mut longer = file;
        longer.push(0);
        assert!(!is_sound(&longer, KIND, &identity()));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let file = encode(KIND, &identity(), &blob());
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(!is_sound(&damaged, KIND, &identity()), "byte {at}");
        }
    }

    #[test]
    fn files_of_another_driver_are_refused() {
        let file = encode(KIND, &identity(), &blob());
        let newer = FileIdentity { driver: 8, ..identity() };
        assert!(!is_sound(&file, KIND, &newer));
        assert_ne!(newer.file_name(KIND), identity().file_name(KIND));
        for kind in [FileKind { version: 1, ..KIND }, FileKind { magic: *b"TDMLNO\x00\x01", ..KIND }] {
            assert!(!is_sound(&file, kind, &identity()), "{kind:?}");
        }
    }

    /// The size of the H100's file after a run of all operators.
    const LARGE: u32 = 40 << 20;

    #[test]
    fn writers_at_once_leave_one_sound_file() {
        let folder = folder("writers");
        let path = folder.join(identity().file_name(KIND));
        let blobs: Vec<_> = (0..3).map(|i| sized_blob(LARGE + i)).collect();
        std::thread::scope(|scope| {
            for blob in &blobs {
                let path = &path;
                scope.spawn(move || {
                    cache_file(path).write(blob).expect("written");
                    let found = cache_file(path).read().expect("always a sound file");
                    assert!(found.len() >= LARGE as usize);
                });
            }
        });
        let found = cache_file(&path).read().expect("a sound file");
        assert!(blobs.contains(&found));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn processes_that_write_at_once_leave_one_sound_file() {
        let folder = folder("processes");
        let path = folder.join(identity().file_name(KIND));
        let mut writers: Vec<_> = (0..3)
            .map(|_| {
                std::process::Command::new(std::env::current_exe().expect("this test"))
                    .args(["--exact", "disk_cache::file::tests::writes_and_reads_a_few_times"])
                    .env("KEPT_FILE_TEST_SHARE", &path)
                    .spawn()
                    .expect("a child")
            })
            .collect();
        for writer in &mut writers {
            assert!(writer.wait().expect("ended").success());
        }
        assert!(cache_file(&path).read().is_some_and(|found| found.len() >= LARGE as usize));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The children's part of the test above.
    #[test]
    fn writes_and_reads_a_few_times() {
        let Some(path) = std::env::var_os("KEPT_FILE_TEST_SHARE") else { return };
        let (path, blob) = (Path::new(&path), sized_blob(LARGE));
        for _ in 0..3 {
            cache_file(path).write(&blob).expect("written");
            assert!(cache_file(path).read().expect("always a sound file") == blob);
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = folder("killed");
        let path = folder.join(identity().file_name(KIND));
        let (old, new) = (path.with_extension("1-0.tmp"), path.with_extension("2-0.tmp"));
        for temporary in [&old, &new] {
            fs::write(temporary, &encode(KIND, &identity(), &blob())[..500]).expect("written");
        }
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(&old).and_then(|file| file.set_modified(long_ago)).expect("dated");
        assert_eq!(cache_file(&path).read(), None);
        cache_file(&path).write(&blob()).expect("written");
        assert!(!old.exists() && new.exists(), "another process may still be writing");
        assert_eq!(cache_file(&path).read(), Some(blob()));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_of_the_user_is_read() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder("hostile");
        let path = folder.join(identity().file_name(KIND));
        let refused = |what: &str| {
            assert!(read_own(&path, KIND.most_bytes).is_err(), "{what} is read");
            assert_eq!(cache_file(&path).read(), None, "{what}");
        };
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        refused("a FIFO");
        // What takes its place is a file again.
        cache_file(&path).write(&blob()).expect("written");
        assert!(cache_file(&path).read().is_some());
        for writable in [0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(writable)).expect("changed");
            refused("a file that others may write to");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(cache_file(&path).read().is_some());
        let elsewhere = folder.join("elsewhere");
        fs::rename(&path, &elsewhere).expect("moved");
        for target in [Path::new("/dev/zero"), &elsewhere] {
            symlink(target, &path).expect("linked");
            refused("a link");
            fs::remove_file(&path).expect("removed");
        }
        fs::create_dir(&path).expect("made");
        refused("a directory");
        assert!(cache_file(&path).write(&blob()).is_err());
        fs::remove_dir(&path).expect("removed");
        let huge = File::create(&path).expect("made");
        huge.set_len(KIND.most_bytes + 1).expect("a file with holes");
        refused("a huge file");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// Writing to it finds no space left, as on a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_the_old_file() {
        let folder = folder("full");
        let path = folder.join(identity().file_name(KIND));
        cache_file(&path).write(&blob()).expect("written");
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -f 1000; trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
            .arg(std::env::current_exe().expect("this test"))
            .arg("disk_cache::file::tests::writes_more_than_there_is_room_for")
            .env("CACHE_FILE_TEST_FULL", &path)
            .status()
            .expect("a shell");
        assert!(limited.success());
        assert_eq!(cache_file(&path).read(), Some(blob()), "the old one");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The child's part of the test above.
    #[cfg(target_os = "linux")]
    #[test]
    fn writes_more_than_there_is_room_for() {
        let Some(path) = std::env::var_os("CACHE_FILE_TEST_FULL") else { return };
        let written = cache_file(Path::new(&path)).write(&sized_blob(LARGE));
        assert!(matches!(written, Err(Error::Io { .. })), "{written:?}");
    }

    #[test]
    fn a_kill_in_the_middle_leaves_a_sound_file() {
        let folder = folder("middle");
        let path = folder.join(identity().file_name(KIND));
        for pause in 0..6 {
            let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
                .args(["--exact", "disk_cache::file::tests::writes_until_it_is_killed"])
                .env("CACHE_FILE_TEST_KILL", &path)
                .spawn()
                .expect("a child");
            while !path.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(17 * pause));
            child.kill().expect("killed");
            child.wait().expect("ended");
            assert!(cache_file(&path).read().is_some_and(|found| found.len() >= LARGE as usize));
        }
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The child's part of the test above.
    #[test]
    fn writes_until_it_is_killed() {
        let Some(path) = std::env::var_os("CACHE_FILE_TEST_KILL") else { return };
        let blob = sized_blob(LARGE);
        loop {
            cache_file(Path::new(&path)).write(&blob).expect("written");
        }
    }
}
