//! Keeps every emitted module as a file, so that `spirv-val` can be asked about all that a program or a test emitted.

use dml_environment::SPIRV_DIR;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the module into the folder that `TORCH_DML_SPIRV_DIR` names, if that is set: one file for each content, as
/// `NAME-HASH.spv`. `scripts/check_spirv.py` validates the folder. Failures are printed, and nothing else depends on them.
pub(crate) fn collect(name: &str, words: &[u32]) {
    if let Some(folder) = SPIRV_DIR.get()
        && let Err(error) = write(&folder, name, words)
    {
        eprintln!("TORCH_DML_SPIRV_DIR: kernel {name} is not collected: {error}");
    }
}

fn write(folder: &Path, name: &str, words: &[u32]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = DefaultHasher::new(); // The same in every process.
    words.hash(&mut hasher);
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(100).collect();
    let file = folder.join(format!("{name}-{:016x}.spv", hasher.finish()));
    if file.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    // Other processes write the same file: each a copy of its own first, so that the file is whole from the start.
    let copy = folder.join(format!(".{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&copy, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())?;
    std::fs::rename(copy, file)
}
