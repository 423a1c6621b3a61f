//! The C++ compiler and its two command lines: compiling one file, and linking one plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::platform::Platform;
use crate::torch::Torch;

/// A C++ compiler.
pub struct Compiler {
    program: String,
    style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// g++ and clang++
    Gnu,
    /// cl.exe. Written from its documentation, and not tested yet.
    Msvc,
}

impl Compiler {
    /// `$CXX`, else the first of g++, c++ and clang++ (cl on Windows) that runs; for a wheel, GNU's
    /// compiler for the wheel's platform.
    pub fn detect(platform: &Platform) -> Result<Self> {
        if let Platform::Wheel { arch, .. } = platform {
            let program = platform.tool("g++");
            if !answers(&program) {
                bail!("no {program}. Install it: `sudo apt install g++-{}-linux-gnu`", arch.replace('_', "-"));
            }
            return Ok(Self::new(program));
        }
        if let Some(program) = std::env::var("CXX").ok().filter(|name| !name.is_empty()) {
            if !answers(&program) {
                bail!("CXX is {program:?}, which does not run");
            }
            return Ok(Self::new(program));
        }
        let known: &[&str] = if cfg!(windows) { &["cl", "clang-cl"] } else { &["g++", "c++", "clang++"] };
        match known.iter().find(|program| answers(program)) {
            Some(program) => Ok(Self::new((*program).to_owned())),
            None if cfg!(windows) => bail!(
                "no C++ compiler. Install the Visual Studio Build Tools with \"Desktop development with C++\" and run \
                 this in a \"x64 Native Tools Command Prompt\""
            ),
            None => bail!(
                "no C++ compiler. Install one: `sudo apt install g++` (Debian, Ubuntu), `sudo dnf install gcc-c++` \
                 (Fedora), `sudo pacman -S gcc` (Arch); or set CXX"
            ),
        }
    }

    fn new(program: String) -> Self {
        let stem = Path::new(&program).file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
        let style = match stem.as_deref() {
            Some("cl" | "clang-cl") => Style::Msvc,
            _ => Style::Gnu,
        };
        Self { program, style }
    }

    /// Extension of object files.
    pub fn object_suffix(&self) -> &'static str {
        match self.style {
            Style::Gnu => "o",
            Style::Msvc => "obj",
        }
    }

    /// The command that compiles `source` to `object` and writes the names of the included headers
    /// to `depfile`. The plugin's own `#include`s are relative to `root`. Messages of PyTorch's
    /// checks name source files; their folders are left out.
    pub fn compile(&self, root: &Path, source: &Path, object: &Path, depfile: &Path, torch: &Torch) -> Command {
        let include = torch.dir.join("include");
        let includes = [include.clone(), include.join("torch/csrc/api/include")];
        let mut command = Command::new(&self.program);
        match self.style {
            Style::Gnu => {
                command.args(["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden"]);
                command.args(["-Wall", "-Wextra", "-Wno-unused-parameter"]);
                // Warnings are enabled for this repository's files, not for torch's headers.
                for dir in &includes {
                    command.arg("-isystem").arg(dir);
                }
                command.arg("-iquote").arg(root);
                for (dir, name) in [(root, "plugin"), (&torch.dir, "torch")] {
                    command.arg(format!("-ffile-prefix-map={}={name}", dir.display()));
                }
                command.arg("-MMD").arg("-MF").arg(depfile);
                command.arg("-c").arg(source).arg("-o").arg(object);
            }
            Style::Msvc => {
                command.args(["/nologo", "/std:c++20", "/O2", "/MD", "/EHsc", "/bigobj"]);
                command.args(["/permissive-", "/Zc:__cplusplus", "/DNOMINMAX"]);
                command.arg("/I").arg(root);
                for dir in &includes {
                    command.arg("/external:I").arg(dir);
                }
                command.arg("/external:W0").arg("/sourceDependencies").arg(depfile);
                command.arg("/c").arg(source);
                command.arg(format!("/Fo{}", object.display()));
            }
        }
        command
    }

    /// The command that links a plugin. `engine` is the file that `-ldml_torch` would find.
    pub fn link(&self, objects: &[PathBuf], engine: &Path, torch: &Torch, out: &Path) -> Command {
        let lib = torch.dir.join("lib");
        let mut command = Command::new(&self.program);
        match self.style {
            Style::Gnu => {
                let folder = engine.parent().unwrap_or(Path::new("."));
                command.arg("-shared").args(objects).arg("-o").arg(out);
                command.arg("-L").arg(folder).arg("-ldml_torch");
                command.arg("-L").arg(lib).args(["-lc10", "-ltorch_cpu"]);
                command.arg("-Wl,-rpath,$ORIGIN").arg("-Wl,--no-undefined");
                // libtorch_cpu's own dependencies are resolved when torch is loaded, not by the
                // linker.
                command.arg("-Wl,--unresolved-symbols=ignore-in-shared-libs");
            }
            Style::Msvc => {
                command.args(["/nologo", "/LD"]).args(objects);
                command.arg(format!("/Fe{}", out.display()));
                command.arg("/link").arg(engine);
                command.args(["c10.lib", "torch_cpu.lib"].map(|name| lib.join(name)));
            }
        }
        command
    }
}

fn answers(program: &str) -> bool {
    // cl has no --version. Without arguments it prints its version and exits with success.
    let argument = (!program.ends_with("cl")).then_some("--version");
    Command::new(program)
        .args(argument)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok()
}
