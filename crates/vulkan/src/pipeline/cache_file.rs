//! The file of a pipeline cache.
//!
//! A file is a header of 64 bytes, then the driver's blob. The header says which adapter and driver
//! wrote the blob, how long it is, and its checksum: a driver may crash on a blob that it did not
//! write, so nothing reaches it that is not exactly what it wrote.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic and format version |
//! | 8..12, 12..16, 16..20 | vendor, device, driver version |
//! | 20..24 | zero |
//! | 24..40 | the driver's cache UUID |
//! | 40..48 | length of the blob |
//! | 48..56 | checksum of the blob |
//! | 56..64 | checksum of bytes 0..56 |

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::adapter::AdapterShared;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"TDMLPC\x00\x01";
const HEADER: usize = 64;
/// A larger file is none of ours: drivers' caches have tens of megabytes.
const MAX_BYTES: u64 = 1 << 30;
/// A temporary file that was not written to for so long is one of a process that was killed.
const ABANDONED: Duration = Duration::from_secs(600);

/// Whose pipelines a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    vendor: u32,
    device: u32,
    driver: u32,
    uuid: [u8; 16],
}

impl Identity {
    pub(super) fn of(adapter: &AdapterShared) -> Self {
        Self {
            vendor: adapter.info.vendor_id,
            device: adapter.info.device_id,
            driver: adapter.info.driver_version,
            uuid: adapter.cache_uuid,
        }
    }

    pub(super) fn file_name(&self) -> String {
        let uuid: String = self.uuid.iter().map(|b| format!("{b:02x}")).collect();
        format!("pipelines-{:04x}-{:04x}-{:08x}-{uuid}.bin", self.vendor, self.device, self.driver)
    }
}

/// The blob of a file, if there is a sound one. Whatever else stands at the path is ignored, with one warning.
pub(super) fn read(path: &Path, identity: &Identity) -> Option<Vec<u8>> {
    let mut bytes = match read_own(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            warn_once(path, &format!("{error}; pipelines are not read from it"));
            return None;
        }
    };
    if !is_sound(&bytes, identity) {
        warn_once(path, "it is damaged or another driver's; pipelines are not read from it");
        return None;
    }
    bytes.drain(..HEADER);
    Some(bytes)
}

/// Says once a process and path what is wrong with it.
pub(super) fn warn_once(path: &Path, what: &str) {
    static SAID: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.iter().any(|known| known == path) {
        tracing::warn!("the pipeline cache {}: {what}", path.display());
        said.push(path.to_owned());
    }
}

/// How often a file is opened that others replace meanwhile.
const ATTEMPTS: usize = 16;
/// How often it is tried on Windows to replace a file, a hundredth of a second apart.
const REPLACE_ATTEMPTS: usize = 300;

/// Reads a regular file of this user that nobody else may write: a driver trusts what it once wrote, and nothing else may hold up
/// the start, as a FIFO would, or fill the memory, as a link to an endless file would.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    for _ in 0..ATTEMPTS {
        // Of the link, if it is one.
        let named = fs::symlink_metadata(path)?;
        check(&named)?;
        let file = open(path)?;
        let opened = file.metadata()?;
        check(&opened)?;
        // Something else may stand there by now: another process's pipelines, for one.
        if is_same(&named, &opened) {
            let mut bytes = Vec::with_capacity(opened.len() as usize);
            file.take(MAX_BYTES).read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    Err(io::Error::other("it is replaced again and again while it is opened"))
}

/// Fails for what is not to be read.
fn check(metadata: &fs::Metadata) -> io::Result<()> {
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(io::Error::other(format!("it has {} bytes, and at most {MAX_BYTES} are read", metadata.len())));
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

/// Files in a user's own folder are that user's: Windows gives them the folder's access list.
#[cfg(not(unix))]
fn check_owner(_: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Opens a file for reading, and waits for nobody to open the other end.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // Of every Linux that has Vulkan, and of the systems that descend from BSD.
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

/// A new file that only this user may write.
fn create(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a blob through a temporary file and a rename: who reads meanwhile, or is killed, finds the old file or the new one.
pub(super) fn write(path: &Path, identity: &Identity, blob: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, &e))?;
    remove_abandoned(directory);
    let temporary =
        path.with_extension(format!("{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let written = create(&temporary)
        .and_then(|mut file| {
            file.write_all(&encode(identity, blob))?;
            file.sync_all()
        })
        .map_err(|e| Error::io(&temporary, &e))
        .and_then(|()| replace(&temporary, path).map_err(|e| Error::io(path, &e)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Puts `from` in the place of `to`. Windows may refuse that while somebody reads the file, or replaces it too: which takes
/// others a moment.
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

/// Removes what processes left behind that were killed while they wrote.
fn remove_abandoned(directory: &Path) {
    let ours = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("pipelines-") && name.ends_with(".tmp"))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed().unwrap_or_default());
        if ours(&entry.file_name()) && age.is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn encode(identity: &Identity, blob: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + blob.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&identity.vendor.to_le_bytes());
    file.extend_from_slice(&identity.device.to_le_bytes());
    file.extend_from_slice(&identity.driver.to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(&identity.uuid);
    file.extend_from_slice(&(blob.len() as u64).to_le_bytes());
    file.extend_from_slice(&checksum(blob).to_le_bytes());
    let head = checksum(&file);
    file.extend_from_slice(&head.to_le_bytes());
    file.extend_from_slice(blob);
    file
}

/// The file is what [`encode`] makes of some blob for this identity, and the blob's own header
/// (`VkPipelineCacheHeaderVersionOne`) names the same device.
fn is_sound(file: &[u8], identity: &Identity) -> bool {
    let Some((header, blob)) = file.split_at_checked(HEADER) else {
        return false;
    };
    if encode(identity, &[])[..40] != header[..40] {
        return false;
    }
    let word = |at: usize| header[at..at + 8].iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
    word(40) == blob.len() as u64
        && word(56) == checksum(&header[..56])
        && word(48) == checksum(blob)
        && driver_header_matches(blob, identity)
}

fn driver_header_matches(blob: &[u8], identity: &Identity) -> bool {
    blob.len() >= 32
        && blob[4..8] == 1u32.to_ne_bytes()
        && blob[8..12] == identity.vendor.to_ne_bytes()
        && blob[12..16] == identity.device.to_ne_bytes()
        && blob[16..32] == identity.uuid
}

/// A multiplicative hash, eight bytes a step. It guards against damage, not against malice.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
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

    fn identity() -> Identity {
        Identity { vendor: 0x10DE, device: 0x2330, driver: 7, uuid: [3; 16] }
    }

    /// A folder of its own for a test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("torch-dml-cache-file-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn blob(identity: &Identity) -> Vec<u8> {
        sized_blob(identity, 1003)
    }

    fn sized_blob(identity: &Identity, bytes: u32) -> Vec<u8> {
        let mut blob = 32u32.to_ne_bytes().to_vec();
        blob.extend_from_slice(&1u32.to_ne_bytes());
        blob.extend_from_slice(&identity.vendor.to_ne_bytes());
        blob.extend_from_slice(&identity.device.to_ne_bytes());
        blob.extend_from_slice(&identity.uuid);
        blob.extend((0..bytes).map(|i| i as u8));
        blob
    }

    #[test]
    fn what_was_written_is_sound() {
        let file = encode(&identity(), &blob(&identity()));
        assert!(is_sound(&file, &identity()));
    }

    #[test]
    fn truncated_files_are_refused() {
        let file = encode(&identity(), &blob(&identity()));
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length], &identity()), "{length} bytes");
        }
        let mut longer = file;
        longer.push(0);
        assert!(!is_sound(&longer, &identity()));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let file = encode(&identity(), &blob(&identity()));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(!is_sound(&damaged, &identity()), "byte {at}");
        }
    }

    #[test]
    fn files_of_another_driver_are_refused() {
        let file = encode(&identity(), &blob(&identity()));
        let newer = Identity { driver: 8, ..identity() };
        assert!(!is_sound(&file, &newer));
        assert_ne!(newer.file_name(), identity().file_name());
        // A sound file around another device's blob.
        let other = Identity { device: 1, ..identity() };
        assert!(!is_sound(&encode(&identity(), &blob(&other)), &identity()));
    }

    /// As large as the H100's after PyTorch's operator tests.
    const LARGE: u32 = 40 << 20;

    #[test]
    fn writers_at_once_leave_one_sound_file() {
        let folder = folder("writers");
        let path = folder.join(identity().file_name());
        let blobs: Vec<_> = (0..3).map(|i| sized_blob(&identity(), LARGE + i)).collect();
        std::thread::scope(|scope| {
            for blob in &blobs {
                let path = &path;
                scope.spawn(move || {
                    write(path, &identity(), blob).expect("written");
                    let found = read(path, &identity()).expect("always a sound file");
                    assert!(found.len() >= LARGE as usize);
                });
            }
        });
        let found = read(&path, &identity()).expect("a sound file");
        assert!(blobs.contains(&found));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn processes_that_write_at_once_leave_one_sound_file() {
        let folder = folder("processes");
        let path = folder.join(identity().file_name());
        let mut writers: Vec<_> = (0..3)
            .map(|_| {
                std::process::Command::new(std::env::current_exe().expect("this test"))
                    .args(["--exact", "pipeline::cache_file::tests::writes_and_reads_a_few_times"])
                    .env("CACHE_FILE_TEST_SHARE", &path)
                    .spawn()
                    .expect("a child")
            })
            .collect();
        for writer in &mut writers {
            assert!(writer.wait().expect("ended").success());
        }
        assert!(read(&path, &identity()).is_some_and(|found| found.len() >= LARGE as usize));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The children's part of the test above.
    #[test]
    fn writes_and_reads_a_few_times() {
        let Some(path) = std::env::var_os("CACHE_FILE_TEST_SHARE") else { return };
        let (path, blob) = (Path::new(&path), sized_blob(&identity(), LARGE));
        for _ in 0..3 {
            write(path, &identity(), &blob).expect("written");
            assert!(read(path, &identity()).expect("always a sound file") == blob);
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = folder("killed");
        let path = folder.join(identity().file_name());
        let (old, new) = (path.with_extension("1-0.tmp"), path.with_extension("2-0.tmp"));
        for temporary in [&old, &new] {
            fs::write(temporary, &encode(&identity(), &blob(&identity()))[..500]).expect("written");
        }
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(&old).and_then(|file| file.set_modified(long_ago)).expect("dated");
        assert_eq!(read(&path, &identity()), None);
        write(&path, &identity(), &blob(&identity())).expect("written");
        assert!(!old.exists() && new.exists(), "another process may still be writing");
        assert_eq!(read(&path, &identity()), Some(blob(&identity())));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[cfg(unix)]
    #[test]
    fn only_a_regular_file_of_the_user_is_read() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder("hostile");
        let path = folder.join(identity().file_name());
        let refused = |what: &str| {
            assert!(read_own(&path).is_err(), "{what} is read");
            assert_eq!(read(&path, &identity()), None, "{what}");
        };
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        refused("a FIFO");
        // What takes its place is a file again.
        write(&path, &identity(), &blob(&identity())).expect("written");
        assert!(read(&path, &identity()).is_some());
        for writable in [0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(writable)).expect("changed");
            refused("a file that others may write to");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(read(&path, &identity()).is_some());
        let elsewhere = folder.join("elsewhere");
        fs::rename(&path, &elsewhere).expect("moved");
        for target in [Path::new("/dev/zero"), &elsewhere] {
            symlink(target, &path).expect("linked");
            refused("a link");
            fs::remove_file(&path).expect("removed");
        }
        fs::create_dir(&path).expect("made");
        refused("a directory");
        assert!(write(&path, &identity(), &blob(&identity())).is_err());
        fs::remove_dir(&path).expect("removed");
        let huge = File::create(&path).expect("made");
        huge.set_len(MAX_BYTES + 1).expect("a file with holes");
        refused("a huge file");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// Writing to it finds no space left, as on a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_the_old_file() {
        let folder = folder("full");
        let path = folder.join(identity().file_name());
        write(&path, &identity(), &blob(&identity())).expect("written");
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -f 1000; trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
            .arg(std::env::current_exe().expect("this test"))
            .arg("pipeline::cache_file::tests::writes_more_than_there_is_room_for")
            .env("CACHE_FILE_TEST_FULL", &path)
            .status()
            .expect("a shell");
        assert!(limited.success());
        assert_eq!(read(&path, &identity()), Some(blob(&identity())), "the old one");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The child's part of the test above.
    #[cfg(target_os = "linux")]
    #[test]
    fn writes_more_than_there_is_room_for() {
        let Some(path) = std::env::var_os("CACHE_FILE_TEST_FULL") else { return };
        let written = write(Path::new(&path), &identity(), &sized_blob(&identity(), LARGE));
        assert!(matches!(written, Err(Error::Io { .. })), "{written:?}");
    }

    #[test]
    fn a_kill_in_the_middle_leaves_a_sound_file() {
        let folder = folder("middle");
        let path = folder.join(identity().file_name());
        for pause in 0..6 {
            let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
                .args(["--exact", "pipeline::cache_file::tests::writes_until_it_is_killed"])
                .env("CACHE_FILE_TEST_KILL", &path)
                .spawn()
                .expect("a child");
            while !path.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(17 * pause));
            child.kill().expect("killed");
            child.wait().expect("ended");
            assert!(read(&path, &identity()).is_some_and(|found| found.len() >= LARGE as usize));
        }
        fs::remove_dir_all(folder).expect("removed");
    }

    /// The child's part of the test above.
    #[test]
    fn writes_until_it_is_killed() {
        let Some(path) = std::env::var_os("CACHE_FILE_TEST_KILL") else { return };
        let blob = sized_blob(&identity(), LARGE);
        loop {
            write(Path::new(&path), &identity(), &blob).expect("written");
        }
    }
}
