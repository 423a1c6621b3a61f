//! The C++ plugins, one per torch minor: compiled in parallel, and only what changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::compiler::Compiler;
use crate::engine::{self, Engine};
use crate::torch::Torch;

/// What to build.
pub struct Request<'a> {
    /// The C++ compiler
    pub compiler: &'a Compiler,
    /// One plugin each
    pub torches: &'a [Torch],
    /// What the plugins link
    pub engine: &'a Engine,
    /// Where the plugins go
    pub out: &'a Path,
    /// The program that removes debug symbols, if they are to go
    pub strip: Option<&'a str>,
    /// Files compiled at once
    pub jobs: usize,
}

/// One file for one torch.
struct Unit<'a> {
    source: PathBuf,
    object: PathBuf,
    depfile: PathBuf,
    torch: &'a Torch,
}

/// Builds the plugins and returns their paths in `out`.
pub fn build(request: &Request<'_>) -> Result<Vec<PathBuf>> {
    let sources = sources()?;
    let mut units = Vec::new();
    for torch in request.torches {
        let folder = folder(request, torch);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for source in &sources {
            let stem = source.file_stem().context("a source without a name")?;
            units.push(Unit {
                source: source.clone(),
                object: folder.join(stem).with_extension(request.compiler.object_suffix()),
                depfile: folder.join(stem).with_extension("d"),
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

fn sources() -> Result<Vec<PathBuf>> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies at the root of the disk")?.join("plugin");
    let mut found: Vec<_> = fs::read_dir(&folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    if found.is_empty() {
        bail!("no .cpp file in {}", folder.display());
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
    eprintln!("   Compiling {} (torch {})", file_name(&unit.source), unit.torch.version);
    let mut command = command(request, unit);
    // Gone first: an interrupted compilation must not leave an object that looks fresh.
    let _ = fs::remove_file(stamp(&unit.object));
    run(&mut command, &format!("{} for torch {}", unit.source.display(), unit.torch.version))?;
    fs::write(stamp(&unit.object), format!("{command:?}"))?;
    Ok(())
}

fn command(request: &Request<'_>, unit: &Unit<'_>) -> Command {
    request.compiler.compile(&unit.source, &unit.object, &unit.depfile, unit.torch)
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

/// An object is fresh when the same command made it and no file that it read is newer.
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

/// The file that holds the command line that made `path`.
fn stamp(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".cmd");
    path.with_file_name(name)
}

/// Prerequisites named by a depfile: a Makefile rule of gcc, or cl's JSON.
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

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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
