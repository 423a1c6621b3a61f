//! The pipeline cache on disk.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use dml_gpu::traits::*;
use dml_gpu::{Error, OpenOptions};
use support::{add_kernel, cache_dir, open_in};

fn only_file(directory: &Path) -> PathBuf {
    let files: Vec<_> =
        fs::read_dir(directory).expect("the directory exists").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn saved_reloaded_and_never_trusted() -> Result<(), Error> {
    let directory = cache_dir("cache");
    let gpu = open_in("cache");
    gpu.save_pipeline_cache()?;
    assert!(!directory.exists(), "nothing was compiled");
    add_kernel(&gpu)?;
    gpu.save_pipeline_cache()?;
    let file = only_file(&directory);
    let good = fs::read(&file).expect("the file");
    assert!(good.starts_with(b"TDMLPC"));
    drop(gpu);

    // A known kernel changes nothing, so the file is not written again.
    let gpu = open_in("cache");
    add_kernel(&gpu)?;
    fs::remove_file(&file).expect("removed");
    gpu.save_pipeline_cache()?;
    let rewritten = file.exists();
    drop(gpu);
    println!("rewritten: {rewritten}");

    let mut damaged: Vec<Vec<u8>> =
        [0, 7, 63, 64, good.len() / 2, good.len() - 1].iter().map(|&length| good[..length].to_vec()).collect();
    damaged.push(vec![0xAB; good.len()]);
    let mut flipped = good.clone();
    if let Some(byte) = flipped.last_mut() {
        *byte ^= 1;
    }
    damaged.push(flipped);
    for bytes in damaged {
        fs::write(&file, &bytes).expect("written");
        let gpu = open_in("cache");
        add_kernel(&gpu)?;
        gpu.save_pipeline_cache()?;
        drop(gpu);
        let repaired = fs::read(&file).expect("the file");
        assert!(repaired.starts_with(b"TDMLPC"));
        assert!(repaired.len() > 64);
        only_file(&directory);
    }
    fs::remove_dir_all(&directory).expect("removed");
    Ok(())
}

#[test]
fn two_devices_share_a_file() -> Result<(), Error> {
    let directory = cache_dir("two");
    let (one, two) = (open_in("two"), open_in("two"));
    add_kernel(&one)?;
    add_kernel(&two)?;
    one.save_pipeline_cache()?;
    two.save_pipeline_cache()?;
    only_file(&directory);
    fs::remove_dir_all(&directory).expect("removed");
    support::assert_valid();
    Ok(())
}

#[test]
fn an_unwritable_directory_is_no_error() -> Result<(), Error> {
    let file = cache_dir("file");
    fs::write(&file, b"not a directory").expect("written");
    let gpu = dml_vulkan::adapters()?[0]
        .open_with(&OpenOptions { cache_dir: Some(file.join("below")), ..OpenOptions::default() })?;
    add_kernel(&gpu)?;
    gpu.save_pipeline_cache()?;
    fs::remove_file(&file).expect("removed");
    Ok(())
}

/// A path that is longer than 260 characters, the limit of Windows' older functions, with letters
/// that no code page has together.
#[test]
fn a_long_folder_in_many_alphabets() -> Result<(), Error> {
    let name = "Größe-速度-ταχύτητα-скорость-🐎";
    let directory = cache_dir(name);
    let deep = (0..12).fold(directory.clone(), |folder, i| folder.join(format!("{name} {i}")));
    assert!(deep.as_os_str().len() > 600);
    let open = || {
        let options = OpenOptions { cache_dir: Some(deep.clone()), ..OpenOptions::default() };
        dml_vulkan::adapters()?[0].open_with(&options)
    };
    let gpu = open()?;
    add_kernel(&gpu)?;
    gpu.save_pipeline_cache()?;
    drop(gpu);
    only_file(&deep);
    let gpu = open()?;
    add_kernel(&gpu)?;
    drop(gpu);
    fs::remove_dir_all(&directory).expect("removed");
    Ok(())
}
