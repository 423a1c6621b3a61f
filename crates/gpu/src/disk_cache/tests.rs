//! Concurrent, killed and hostile writers of cache files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::layout::encode;
use super::reader::read_own;
use super::writer::ABANDONED;
use super::{CacheFile, FileIdentity, FileKind};
use crate::error::Error;

pub(super) const KIND: FileKind =
    FileKind { name: "pipelines", magic: *b"TDMLPC\x00\x01", version: 0, most_bytes: 1 << 30 };

pub(super) fn identity() -> FileIdentity {
    FileIdentity { vendor: 0x10DE, device: 0x2330, driver: 7, uuid: [3; 16] }
}

/// The cache file at a path in its folder.
fn cache_file(path: &Path) -> CacheFile {
    CacheFile::new(identity(), path.parent().expect("in a folder"), KIND)
}

/// A folder of its own for a test.
pub(super) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("torch-dml-cache-file-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

pub(super) fn content() -> Vec<u8> {
    content_of(1003)
}

fn content_of(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|i| i as u8).collect()
}

/// The size of the H100's file after a run of all operators.
const LARGE: u32 = 40 << 20;

#[test]
fn writers_at_once_leave_one_sound_file() {
    let folder = folder("writers");
    let path = folder.join(identity().file_name(KIND));
    let contents: Vec<_> = (0..3).map(|i| content_of(LARGE + i)).collect();
    std::thread::scope(|scope| {
        for content in &contents {
            let path = &path;
            scope.spawn(move || {
                cache_file(path).write(content).expect("written");
                let found = cache_file(path).read().expect("always a sound file");
                assert!(found.len() >= LARGE as usize);
            });
        }
    });
    let found = cache_file(&path).read().expect("a sound file");
    assert!(contents.contains(&found));
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
                .args(["--exact", "disk_cache::tests::writes_and_reads_a_few_times"])
                .env("CACHE_FILE_TEST_SHARE", &path)
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
    let Some(path) = std::env::var_os("CACHE_FILE_TEST_SHARE") else { return };
    let (path, content) = (Path::new(&path), content_of(LARGE));
    for _ in 0..3 {
        cache_file(path).write(&content).expect("written");
        assert!(cache_file(path).read().expect("always a sound file") == content);
    }
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let folder = folder("killed");
    let path = folder.join(identity().file_name(KIND));
    let (old, new) = (path.with_extension("1-0.tmp"), path.with_extension("2-0.tmp"));
    for temporary in [&old, &new] {
        fs::write(temporary, &encode(KIND, &identity(), &content())[..500]).expect("written");
    }
    let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
    File::options().write(true).open(&old).and_then(|file| file.set_modified(long_ago)).expect("dated");
    assert_eq!(cache_file(&path).read(), None);
    cache_file(&path).write(&content()).expect("written");
    assert!(!old.exists() && new.exists(), "another process may still be writing");
    assert_eq!(cache_file(&path).read(), Some(content()));
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
    // Writing replaces it by a regular file.
    cache_file(&path).write(&content()).expect("written");
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
    assert!(cache_file(&path).write(&content()).is_err());
    fs::remove_dir(&path).expect("removed");
    let huge = File::create(&path).expect("made");
    huge.set_len(KIND.most_bytes + 1).expect("a file with holes");
    refused("a huge file");
    fs::remove_dir_all(folder).expect("removed");
}

/// The size limit of files fails the write, as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = folder("full");
    let path = folder.join(identity().file_name(KIND));
    cache_file(&path).write(&content()).expect("written");
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1000; trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().expect("this test"))
        .arg("disk_cache::tests::writes_more_than_there_is_room_for")
        .env("CACHE_FILE_TEST_FULL", &path)
        .status()
        .expect("a shell");
    assert!(limited.success());
    assert_eq!(cache_file(&path).read(), Some(content()), "the old one");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no temporary file is left");
    fs::remove_dir_all(folder).expect("removed");
}

/// The child's part of the test above.
#[cfg(target_os = "linux")]
#[test]
fn writes_more_than_there_is_room_for() {
    let Some(path) = std::env::var_os("CACHE_FILE_TEST_FULL") else { return };
    let written = cache_file(Path::new(&path)).write(&content_of(LARGE));
    assert!(matches!(written, Err(Error::Io { .. })), "{written:?}");
}

#[test]
fn a_kill_in_the_middle_leaves_a_sound_file() {
    let folder = folder("middle");
    let path = folder.join(identity().file_name(KIND));
    for pause in 0..6 {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "disk_cache::tests::writes_until_it_is_killed"])
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
    let content = content_of(LARGE);
    loop {
        cache_file(Path::new(&path)).write(&content).expect("written");
    }
}
