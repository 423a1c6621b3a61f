//! The platform of the libraries: this machine, or any Linux of an architecture with a minimum
//! glibc.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// A platform that libraries are built for.
pub enum Platform {
    /// This machine, with its own compilers
    Host,
    /// A wheel's platform: Linux with a minimum glibc. The libraries have the same bytes for any
    /// build folder
    Wheel {
        /// `x86_64` or `aarch64`
        arch: String,
        /// The oldest glibc, `2.28`
        glibc: String,
    },
}

impl Platform {
    /// `manylinux_2_28_x86_64`, a wheel's tag; this machine's where none is given.
    pub fn parse(tag: Option<&str>) -> Result<Self> {
        let Some(tag) = tag else { return Ok(Self::Host) };
        let parts: Vec<_> = tag.splitn(4, '_').collect();
        match parts[..] {
            ["manylinux", major, minor, arch @ ("x86_64" | "aarch64")] => {
                Ok(Self::Wheel { arch: arch.to_owned(), glibc: format!("{major}.{minor}") })
            }
            _ => bail!("{tag:?} is not a platform that wheels are built for: manylinux_2_28_x86_64 or .._aarch64"),
        }
    }

    /// The program `name` of GNU's tools for this platform: `aarch64-linux-gnu-strip`.
    pub fn tool(&self, name: &str) -> String {
        match self {
            Self::Host => name.to_owned(),
            Self::Wheel { arch, .. } => format!("{arch}-linux-gnu-{name}"),
        }
    }

    /// The cargo command that builds for this platform, without the packages to build.
    pub fn cargo_build(&self, root: &Path) -> Command {
        let mut command = Command::new(cargo());
        match self {
            Self::Host => {
                command.arg("build");
            }
            Self::Wheel { arch, glibc } => {
                // zig includes the symbols of every glibc, and links for each architecture.
                command.args(["zigbuild", "--target", &format!("{arch}-unknown-linux-gnu.{glibc}")]);
                // Messages of panics name source files.
                let flags = [(root.to_owned(), "torch-dml"), (cargo_home(), "cargo")]
                    .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
                command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
            }
        }
        command
    }
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn cargo_home() -> std::path::PathBuf {
    match std::env::var_os("CARGO_HOME") {
        Some(folder) => folder.into(),
        None => std::env::home_dir().unwrap_or_default().join(".cargo"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tags() {
        let platform = Platform::parse(Some("manylinux_2_28_aarch64")).expect("a known tag");
        assert_eq!(platform.tool("strip"), "aarch64-linux-gnu-strip");
        assert!(matches!(platform, Platform::Wheel { glibc, .. } if glibc == "2.28"));
        assert!(matches!(Platform::parse(None), Ok(Platform::Host)));
        for nonsense in ["manylinux_2_28", "linux_x86_64", "manylinux_2_28_riscv64"] {
            assert!(Platform::parse(Some(nonsense)).is_err(), "{nonsense}");
        }
    }
}
