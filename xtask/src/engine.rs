//! The engine library: built by cargo, and copied to the plugins' folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::platform::Platform;

/// The engine's files in cargo's target folder.
pub struct Engine {
    /// `libdml_torch.so` or `dml_torch.dll`
    pub library: PathBuf,
    /// The file that a plugin is linked with: the library itself, or `dml_torch.dll.lib` on Windows
    pub link: PathBuf,
    /// Cargo's target folder, where the plugins' objects go too
    pub target: PathBuf,
}

/// Builds dml-torch for `platform` with cargo, whose messages name the library's path.
pub fn build(profile: &str, platform: &Platform) -> Result<Engine> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies at the root of the disk")?;
    let output = platform
        .cargo_build(root)
        .args(["--package", "dml-torch", "--lib", "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo could not build the engine (crate dml-torch)");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let files = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact" && message["target"]["name"] == "dml_torch")
        .find_map(|message| {
            let files: Vec<PathBuf> = message["filenames"]
                .as_array()?
                .iter()
                .filter_map(|name| Some(PathBuf::from(name.as_str()?)))
                .collect();
            Some(files)
        })
        .context("cargo did not say where it put the engine")?;
    let with_suffix = |suffix: &str| files.iter().find(|file| file.to_string_lossy().ends_with(suffix)).cloned();
    let library = with_suffix(std::env::consts::DLL_SUFFIX)
        .context("dml-torch made no dynamic library: is `cdylib` among its crate types?")?;
    let link = if cfg!(windows) {
        with_suffix(".dll.lib").context("dml-torch made no import library")?
    } else {
        library.clone()
    };
    let target = library.parent().and_then(Path::parent).context("the engine lies at the root of the disk")?.to_owned();
    Ok(Engine { library, link, target })
}

/// Copies the engine into `out`, and removes its debug symbols if a program `strip` is given.
pub fn install(engine: &Engine, out: &Path, strip: Option<&str>) -> Result<PathBuf> {
    let name = engine.library.file_name().context("the engine has no name")?;
    let target = out.join(name);
    replace(&engine.library, &target, strip)?;
    Ok(target)
}

/// Replaces `to` by `from` atomically: a process that has mapped the old library keeps it.
pub fn replace(from: &Path, to: &Path, strip: Option<&str>) -> Result<()> {
    // The copy gets the original's modification time, which distinguishes copies from different
    // target folders.
    let time = modified(from);
    if time.is_some() && modified(to) == time {
        return Ok(());
    }
    let mut name = to.file_name().unwrap_or(OsStr::new("library")).to_owned();
    name.push(".new");
    let staged = to.with_file_name(name);
    fs::copy(from, &staged).with_context(|| format!("cannot copy {} to {}", from.display(), staged.display()))?;
    if let Some(strip) = strip {
        run_strip(strip, &staged);
    }
    if let Some(time) = time {
        let file = fs::File::options().append(true).open(&staged)?;
        file.set_modified(time)?;
    }
    fs::rename(&staged, to).with_context(|| format!("cannot write {}", to.display()))
}

fn run_strip(program: &str, file: &Path) {
    let done = Command::new(program).arg("--strip-unneeded").arg(file).status();
    if !done.is_ok_and(|status| status.success()) {
        eprintln!("warning: {program} failed; {} keeps its symbols", file.display());
    }
}

/// Whether `file` exists and is at least as new as `source`.
pub fn is_newer(file: &Path, source: &Path) -> bool {
    matches!((modified(file), modified(source)), (Some(file), Some(source)) if file >= source)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}
