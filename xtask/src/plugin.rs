//! The C++ plugins, one per torch minor. Files are compiled in parallel, and only if they changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::compiler::Compiler;
use crate::engine::{self, Engine};
use crate::torch::Torch;

/// The parameters of a build.
pub struct Request<'a> {
    /// The C++ compiler
    pub compiler: &'a Compiler,
    /// The installed torch versions; each gets a plugin
    pub torches: &'a [Torch],
    /// The engine, which the plugins are linked with
    pub engine: &'a Engine,
    /// The plugins' folder
    pub out: &'a Path,
    /// The program that removes debug symbols, if they are to be removed
    pub strip: Option<&'a str>,
    /// The number of files compiled at once
    pub jobs: usize,
}

/// One source file, compiled for one torch.
struct Unit<'a> {
    root: &'a Path,
    source: PathBuf,
    object: PathBuf,
    depfile: PathBuf,
    torch: &'a Torch,
}

/// Builds the plugins and returns their paths in `out`.
pub fn build(request: &Request<'_>) -> Result<Vec<PathBuf>> {
    let root = root()?;
    let sources = sources(&root)?;
    let mut units = Vec::new();
    for torch in request.torches {
        for source in &sources {
            let object = folder(request, torch)
                .join(source.strip_prefix(&root)?)
                .with_extension(request.compiler.object_suffix());
            let folder = object.parent().context("an object without a folder")?;
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            units.push(Unit {
                root: &root,
                source: source.clone(),
                depfile: object.with_extension("d"),
                object,
                torch,
            });
        }
    }
    compile_all(request, &units)?;
    request
        .torches
        .iter()
        .map(|torch| {
            let objects: Vec<_> =
                units.iter().filter(|unit| unit.torch.tag() == torch.tag()).map(|unit| unit.object.clone()).collect();
            link(request, torch, &objects)
        })
        .collect()
}

fn folder(request: &Request<'_>, torch: &Torch) -> PathBuf {
    request.engine.target.join("plugin").join(torch.tag())
}

/// The folder of the sources, from which their `#include`s begin.
fn root() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies at the root of the disk")?;
    Ok(workspace.join("plugin"))
}

/// The sources in `root` and in its folders.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let list = |folder: &Path| -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    };
    let mut found = list(root)?;
    for folder in found.clone().iter().filter(|path| path.is_dir()) {
        found.extend(list(folder)?);
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
    if found.is_empty() {
        bail!("no .cpp file in {}", root.display());
    }
    found.sort();
    Ok(found)
}

fn compile_all(request: &Request<'_>, units: &[Unit<'_>]) -> Result<()> {
    let stale: Vec<_> = units.iter().filter(|unit| !is_fresh(request, unit)).collect();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..request.jobs.clamp(1, stale.len().max(1)) {
            scope.spawn(|| {
                while let Some(unit) = stale.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = compile(request, unit) {
                        let mut failed = failed.lock().unwrap_or_else(|lock| lock.into_inner());
                        failed.push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|lock| lock.into_inner());
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

fn compile(request: &Request<'_>, unit: &Unit<'_>) -> Result<()> {
    let name = unit.source.strip_prefix(unit.root)?;
    eprintln!("   Compiling {} (torch {})", name.display(), unit.torch.version);
    let mut command = command(request, unit);
    // Removed first: an interrupted compilation must not leave an object that looks up to date.
    let _ = fs::remove_file(stamp(&unit.object));
    run(&mut command, &format!("{} for torch {}", unit.source.display(), unit.torch.version))?;
    fs::write(stamp(&unit.object), format!("{command:?}"))?;
    Ok(())
}

fn command(request: &Request<'_>, unit: &Unit<'_>) -> Command {
    request.compiler.compile(unit.root, &unit.source, &unit.object, &unit.depfile, unit.torch)
}

fn link(request: &Request<'_>, torch: &Torch, objects: &[PathBuf]) -> Result<PathBuf> {
    let name = format!("{}torch_dml_{}{}", std::env::consts::DLL_PREFIX, torch.tag(), std::env::consts::DLL_SUFFIX);
    let built = folder(request, torch).join(&name);
    let engine = &request.engine.link;
    let mut command = request.compiler.link(objects, engine, torch, &built);
    let line = format!("{command:?}");
    let fresh = objects.iter().chain([engine]).all(|input| engine::is_newer(&built, input))
        && fs::read_to_string(stamp(&built)).is_ok_and(|old| old == line);
    if !fresh {
        eprintln!("     Linking {name}");
        let _ = fs::remove_file(stamp(&built));
        run(&mut command, &name)?;
        fs::write(stamp(&built), line)?;
    }
    let target = request.out.join(&name);
    engine::replace(&built, &target, request.strip)?;
    Ok(target)
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let text = [output.stdout, output.stderr].concat();
    if !output.status.success() {
        bail!("{what}:\n{}", String::from_utf8_lossy(&text));
    }
    eprint!("{}", String::from_utf8_lossy(&text));
    Ok(())
}

/// An object is up to date if the same command produced it and no file that it was compiled from is
/// newer.
fn is_fresh(request: &Request<'_>, unit: &Unit<'_>) -> bool {
    let same =
        fs::read_to_string(stamp(&unit.object)).is_ok_and(|line| line == format!("{:?}", command(request, unit)));
    let Ok(text) = fs::read_to_string(&unit.depfile) else {
        return false;
    };
    let read = dependencies(&text);
    same && !read.is_empty()
        && read.iter().all(|file| engine::is_newer(&unit.object, file))
        && engine::is_newer(&unit.object, &unit.torch.dir.join("version.py"))
}

/// The file with the command line that produced `path`.
fn stamp(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".cmd");
    path.with_file_name(name)
}

/// The prerequisites in a depfile: a Makefile rule by gcc, or cl's JSON.
fn dependencies(text: &str) -> Vec<PathBuf> {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(text) {
        let data = &json["Data"];
        return data["Includes"]
            .as_array()
            .into_iter()
            .flatten()
            .chain([&data["Source"]])
            .filter_map(|name| Some(PathBuf::from(name.as_str()?)))
            .collect();
    }
    let Some((_, rule)) = text.split_once(": ") else {
        return Vec::new();
    };
    rule.replace("\\\n", " ")
        .replace("\\ ", "\0")
        .split_whitespace()
        .map(|word| PathBuf::from(word.replace('\0', " ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_depfiles() {
        let text = "a.o: /s/a.cpp /s/engine.h \\\n /s/with\\ space.h\n";
        let expected = ["/s/a.cpp", "/s/engine.h", "/s/with space.h"].map(PathBuf::from);
        assert_eq!(dependencies(text), expected);
        let json = r#"{"Version": "1.1", "Data": {"Source": "c:\\a.cpp", "Includes": ["c:\\b.h"]}}"#;
        assert_eq!(dependencies(json), ["c:\\b.h", "c:\\a.cpp"].map(PathBuf::from));
        assert!(dependencies("").is_empty());
    }
}
