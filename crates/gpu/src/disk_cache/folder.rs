//! The folder of the disk cache.

use std::ffi::OsString;
use std::path::PathBuf;

use dml_environment::CACHE_DIR;

/// The given folder, else the folder that the environment names, else `torch-dml` in the user's
/// cache directory; `None` if there is no such directory.
pub fn folder(given: Option<PathBuf>) -> Option<PathBuf> {
    given.or_else(|| CACHE_DIR.get()).or_else(|| user_directory(|name| std::env::var_os(name)))
}

/// `torch-dml` in the user's cache directory, which the system's variables name.
fn user_directory(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let get = |name| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        get("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        get("HOME").map(|home| home.join("Library/Caches"))
    } else {
        get("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| get("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("torch-dml"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_directory_comes_from_the_environment() {
        let base = if cfg!(windows) { "C:\\cache" } else { "/cache" };
        let user =
            user_directory(|name| matches!(name, "XDG_CACHE_HOME" | "LOCALAPPDATA").then(|| OsString::from(base)));
        if !cfg!(target_os = "macos") {
            assert_eq!(user, Some(Path::new(base).join("torch-dml")));
        }
        assert_eq!(user_directory(|_| None), None);
    }
}
