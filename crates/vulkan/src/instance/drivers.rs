//! Drivers in a process that already has LLVM's symbols for all to see, as TensorFlow 2.21's
//! libraries do. Mesa's drivers would take these for those of their own LLVM, which is of another
//! version, and crash. So they are loaded here first, with `RTLD_DEEPBIND`: each prefers what its
//! own libraries define. The loader, which loads them later, gets the same ones.
//!
//! In all other processes the loader loads them, as a preference of their own libraries would hide
//! a `malloc` that the process has replaced.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// `RTLD_DEEPBIND` of glibc.
const DEEPBIND: i32 = 8;

/// Functions of LLVM's interfaces in C and C++ that Mesa's drivers, or their LLVM, call:
/// `LLVMContextCreate`, and `llvm::LLVMContext`'s constructor.
const OF_LLVM: [&[u8]; 2] = [b"LLVMContextCreate\0", b"_ZN4llvm11LLVMContextC1Ev\0"];

/// The variables that name the manifests, in place of the folders.
const INSTEAD: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
/// The variable that names manifests besides those of the folders.
const BESIDES: &str = "VK_ADD_DRIVER_FILES";

/// Whether any library that is loaded may use the process' LLVM.
fn llvm_is_visible() -> bool {
    let process = Library::this();
    // SAFETY: only addresses are looked up, of symbols that nobody calls here.
    OF_LLVM.iter().any(|symbol| unsafe { process.get::<*const ()>(symbol) }.is_ok())
}

/// The paths of a variable like `PATH`.
fn paths(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The folders that the loader searches, in its order.
fn folders() -> Vec<PathBuf> {
    let or = |found: Vec<PathBuf>, default: &[&str]| {
        if found.is_empty() { default.iter().map(PathBuf::from).collect() } else { found }
    };
    let home = |variable: &str, below: &str| -> Vec<PathBuf> {
        let default = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(below));
        let found = paths(variable);
        if found.is_empty() { default.into_iter().collect() } else { found }
    };
    let parents = [
        home("XDG_CONFIG_HOME", ".config"),
        or(paths("XDG_CONFIG_DIRS"), &["/etc/xdg"]),
        vec![PathBuf::from("/usr/local/etc"), PathBuf::from("/etc")],
        home("XDG_DATA_HOME", ".local/share"),
        or(paths("XDG_DATA_DIRS"), &["/usr/local/share", "/usr/share"]),
    ];
    parents.into_iter().flatten().map(|parent| parent.join("vulkan/icd.d")).collect()
}

/// The manifests in a folder, or the one that is named.
fn manifests_at(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}

fn manifests() -> Vec<PathBuf> {
    let instead = INSTEAD.iter().map(|variable| paths(variable)).find(|found| !found.is_empty());
    let places = instead.unwrap_or_else(|| paths(BESIDES).into_iter().chain(folders()).collect());
    places.iter().flat_map(|place| manifests_at(place)).collect()
}

/// What the loader loads for a manifest: a path, or a name that the system searches.
fn library(manifest: &Path) -> Option<OsString> {
    let text = std::fs::read(manifest).ok()?;
    let parsed: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let library = parsed["ICD"]["library_path"].as_str()?;
    let is_relative = library.contains('/') && !library.starts_with('/');
    Some(if is_relative { manifest.parent()?.join(library).into() } else { library.into() })
}

/// Loads the drivers, if the process' LLVM would come between them and their own. They stay loaded.
pub(super) fn keep_from_foreign_llvm() {
    if !llvm_is_visible() {
        return;
    }
    for library in manifests().iter().filter_map(|manifest| library(manifest)) {
        // SAFETY: the Vulkan loader would run the driver's initialisers next.
        match unsafe { Library::open(Some(&library), RTLD_NOW | RTLD_LOCAL | DEEPBIND) } {
            Ok(driver) => {
                tracing::debug!("{} is kept from the process' LLVM", library.to_string_lossy());
                std::mem::forget(driver);
            }
            // For another architecture, or not there: the loader passes it over too.
            Err(error) => tracing::debug!("{}: {error}", library.to_string_lossy()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_manifest_names_a_library_as_the_loader_understands_it() {
        let folder = std::env::temp_dir().join(format!("manifests-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let manifest = folder.join("driver.json");
        for (named, found) in [
            ("/lib/driver.so", PathBuf::from("/lib/driver.so")),
            ("driver.so", PathBuf::from("driver.so")),
            ("../lib/driver.so", folder.join("../lib/driver.so")),
        ] {
            std::fs::write(&manifest, format!(r#"{{"ICD": {{"library_path": "{named}"}}}}"#)).unwrap();
            assert_eq!(library(&manifest).map(PathBuf::from), Some(found));
        }
        std::fs::write(folder.join("readme.txt"), "not a manifest").unwrap();
        assert_eq!(manifests_at(&folder), std::slice::from_ref(&manifest));
        std::fs::write(&manifest, "not JSON").unwrap();
        assert_eq!(library(&manifest), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
