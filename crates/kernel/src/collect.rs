//! Writes every emitted module to a file, so that `spirv-val` or an HLSL compiler can check all
//! modules of a program or a test.

use dml_environment::{HLSL_DIR, SPIRV_DIR};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the module into the folder that `TORCH_DML_SPIRV_DIR` names, if that is set: one file for
/// each content, as `NAME-HASH.spv`. `scripts/check_spirv.py` validates the folder. Failures are
/// printed, and nothing else depends on them.
pub(crate) fn collect(name: &str, words: &[u32]) {
    if let Some(folder) = SPIRV_DIR.get() {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Err(error) = write(&folder, name, "spv", &bytes) {
            eprintln!("TORCH_DML_SPIRV_DIR: kernel {name} is not collected: {error}");
        }
    }
}

/// The same for HLSL, with `TORCH_DML_HLSL_DIR` and `NAME-HASH.hlsl`.
pub(crate) fn collect_text(name: &str, text: &str) {
    if let Some(folder) = HLSL_DIR.get()
        && let Err(error) = write(&folder, name, "hlsl", text.as_bytes())
    {
        eprintln!("TORCH_DML_HLSL_DIR: kernel {name} is not collected: {error}");
    }
}

/// The SPIR-V that an HLSL compiler produced from a text in that folder (`scripts/check_hlsl.py`).
pub(crate) fn collected(name: &str, text: &str) -> Option<Vec<u32>> {
    let file = HLSL_DIR.get()?.join(file_name(name, "spv", text.as_bytes()));
    let bytes = std::fs::read(file).ok()?;
    Some(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// Writes into that folder, as `NAME-HASH.origin`, which module of a kernel runs: "compiled" for
/// the HLSL compiler's, or the reason why the emitter's own runs. The hash is that of the emitter's
/// words. `scripts/check_hlsl.py --ran` counts the files.
pub(crate) fn collect_origin(name: &str, words: &[u32], reason: Option<&str>) {
    let Some(folder) = HLSL_DIR.get() else { return };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let note = reason.unwrap_or("compiled");
    if let Err(error) = replace(&folder, &file_name(name, "origin", &bytes), note.as_bytes()) {
        eprintln!("TORCH_DML_HLSL_DIR: what runs of kernel {name} is not noted: {error}");
    }
}

/// The name of a file, from the kernel's name and a hash of the content.
fn file_name(name: &str, kind: &str, content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new(); // Its seed is the same in every process.
    content.hash(&mut hasher);
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(100).collect();
    format!("{name}-{:016x}.{kind}", hasher.finish())
}

fn write(folder: &Path, name: &str, kind: &str, content: &[u8]) -> io::Result<()> {
    let name = file_name(name, kind, content);
    if folder.join(&name).exists() { Ok(()) } else { replace(folder, &name, content) }
}

/// Replaces a file by way of a temporary copy: other processes may write the same file, and no
/// reader sees a part of it.
fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(folder)?;
    let copy = folder.join(format!(".{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&copy, content)?;
    std::fs::rename(copy, folder.join(name))
}
