//! Finds an installed torch and reads its version, without starting Python.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The oldest minor that the plugin's sources are written for.
const OLDEST: (u32, u32) = (2, 11);

/// An installed torch.
#[derive(Debug, Clone)]
pub struct Torch {
    /// `.../site-packages/torch`
    pub dir: PathBuf,
    /// The full version, `2.11.0+cu130`
    pub version: String,
    /// 2 of 2.11.0
    pub major: u32,
    /// 11 of 2.11.0
    pub minor: u32,
}

impl Torch {
    /// Finds torch in `dir`, which is torch's own folder, a site-packages folder or a virtual
    /// environment.
    pub fn find(dir: &Path) -> Result<Self> {
        let dir = candidates(dir)
            .into_iter()
            .find(|folder| folder.join("version.py").is_file() && folder.join("include").is_dir())
            .with_context(|| {
                format!(
                    "no torch with headers in {} (expected .../site-packages/torch or a virtual environment)",
                    dir.display()
                )
            })?;
        let file = dir.join("version.py");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let version = version_in(&text).with_context(|| format!("no __version__ in {}", file.display()))?;
        let (major, minor) =
            minor_of(version).with_context(|| format!("cannot read the version {version:?} in {}", file.display()))?;
        if (major, minor) < OLDEST {
            bail!("{} is torch {version}; torch-dml needs {}.{} or newer", dir.display(), OLDEST.0, OLDEST.1);
        }
        Ok(Self { version: version.to_owned(), dir, major, minor })
    }

    /// `2_11`, the part of the plugin's file name
    pub fn tag(&self) -> String {
        format!("{}_{}", self.major, self.minor)
    }
}

/// Fails if two folders have the same minor: both plugins would be written to one file.
pub fn check_distinct(torches: &[Torch]) -> Result<()> {
    for (i, one) in torches.iter().enumerate() {
        if let Some(other) = torches[..i].iter().find(|other| other.tag() == one.tag()) {
            bail!(
                "{} (torch {}) and {} (torch {}) are the same minor; give one of them",
                other.dir.display(),
                other.version,
                one.dir.display(),
                one.version
            );
        }
    }
    Ok(())
}

fn candidates(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned(), dir.join("torch"), dir.join("Lib/site-packages/torch")];
    if let Ok(entries) = fs::read_dir(dir.join("lib")) {
        let mut pythons: Vec<_> = entries.flatten().map(|entry| entry.path().join("site-packages/torch")).collect();
        pythons.sort();
        found.extend(pythons);
    }
    found
}

fn version_in(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.strip_prefix("__version__")?.trim_start().strip_prefix('='))
        .map(|value| value.trim().trim_matches(['\'', '"']))
}

fn minor_of(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version() {
        let text = "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '2.11.0+cu130'\n";
        assert_eq!(version_in(text), Some("2.11.0+cu130"));
        assert_eq!(minor_of("2.11.0+cu130"), Some((2, 11)));
        assert_eq!(minor_of("2.16.0a0+git1234"), Some((2, 16)));
        assert_eq!(minor_of("nightly"), None);
    }

    #[test]
    fn refuses_one_minor_twice() {
        let torch =
            |version: &str| Torch { dir: PathBuf::from(version), version: version.to_owned(), major: 2, minor: 11 };
        let error = check_distinct(&[torch("2.11.0"), torch("2.11.1")]).expect_err("same minor");
        assert!(error.to_string().contains("2.11.0") && error.to_string().contains("2.11.1"));
    }

    #[test]
    fn names_the_folder_without_torch() {
        let error = Torch::find(Path::new("/nowhere")).expect_err("no torch there");
        assert!(error.to_string().contains("/nowhere"));
    }
}
