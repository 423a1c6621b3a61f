//! The driver's pipeline cache, filled from a file and saved to it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;
use dml_environment::CACHE_DIR;

use super::cache_file::{self, Identity, checksum};
use crate::device::DeviceShared;
use crate::error::Error;

/// The driver's pipeline cache and its file.
pub(super) struct PipelineCache {
    raw: vk::PipelineCache,
    device: Arc<DeviceShared>,
    identity: Identity,
    path: Option<PathBuf>,
    compiled: AtomicU64,
    saved: Mutex<Saved>,
}

struct Saved {
    /// How many pipelines were compiled when the file was last written.
    compiled: u64,
    /// Checksum of the blob that was last read from or written to the file.
    checksum: Option<u64>,
}

impl PipelineCache {
    /// Creates the cache, filled from the file if there is a sound one. Never fails: without a
    /// cache, compilation is slower and nothing else changes.
    pub(super) fn load(device: &Arc<DeviceShared>, directory: Option<PathBuf>) -> Self {
        let identity = Identity::of(&device.adapter);
        let path = directory
            .or_else(|| CACHE_DIR.get())
            .or_else(|| user_directory(|name| std::env::var_os(name)))
            .map(|directory| directory.join(identity.file_name()));
        let blob = path.as_deref().and_then(|path| cache_file::read(path, &identity));
        let checksum = blob.as_deref().map(checksum);
        let raw = create(&device.raw, blob.as_deref().unwrap_or(&[])).or_else(|_| create(&device.raw, &[]));
        Self {
            raw: raw.unwrap_or_else(|error| {
                tracing::debug!("no pipeline cache: vkCreatePipelineCache failed: {error:?}");
                vk::PipelineCache::null()
            }),
            device: Arc::clone(device),
            identity,
            path,
            compiled: AtomicU64::new(0),
            saved: Mutex::new(Saved { compiled: 0, checksum }),
        }
    }

    pub(super) fn raw(&self) -> vk::PipelineCache {
        self.raw
    }

    pub(super) fn note_compiled(&self) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the file if something was compiled since, through a temporary file and a rename.
    pub(super) fn save(&self) -> Result<(), Error> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = self.compiled.load(Ordering::Relaxed);
        let Some(path) = &self.path else {
            return Ok(());
        };
        if compiled == saved.compiled || self.raw == vk::PipelineCache::null() {
            return Ok(());
        }
        // Another process may have saved since: keep its pipelines too.
        let other = cache_file::read(path, &self.identity).filter(|b| saved.checksum != Some(checksum(b)));
        let blob = match other {
            Some(other) => self.merged_data(&other),
            // SAFETY: the cache is of this device, and not null. Others may compile into it meanwhile: the driver synchronises.
            None => unsafe { self.device.raw.get_pipeline_cache_data(self.raw) },
        }
        .map_err(|e| Error::from_vk("vkGetPipelineCacheData", e))?;
        let sum = checksum(&blob);
        if saved.checksum != Some(sum) {
            if let Err(error) = cache_file::write(path, &self.identity, &blob) {
                cache_file::warn_once(path, &format!("pipelines are not saved to it: {error}"));
                return Ok(());
            }
            tracing::debug!("saved {} bytes of pipelines to {}", blob.len(), path.display());
        }
        saved.compiled = compiled;
        saved.checksum = Some(sum);
        Ok(())
    }

    /// The data of this cache and of `blob` together. The merge goes into a third cache, because
    /// threads may be compiling into this one.
    fn merged_data(&self, blob: &[u8]) -> Result<Vec<u8>, vk::Result> {
        let device = &self.device.raw;
        let merged = create(device, blob)?;
        // SAFETY: both caches are of this device and not null. Nobody else knows `merged`, which alone must not be used
        // meanwhile; the driver synchronises the other.
        unsafe {
            let data =
                device.merge_pipeline_caches(merged, &[self.raw]).and_then(|()| device.get_pipeline_cache_data(merged));
            device.destroy_pipeline_cache(merged, None);
            data
        }
    }
}

impl Drop for PipelineCache {
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // SAFETY: the cache is of this device, or null, which is nothing. It is used within calls alone, and this is its last
        // owner.
        unsafe { self.device.raw.destroy_pipeline_cache(self.raw, None) };
    }
}

fn create(device: &ash::Device, blob: &[u8]) -> Result<vk::PipelineCache, vk::Result> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(blob);
    // SAFETY: the device is valid; the blob lives through the call. It is empty or, by its header and its checksum, what this
    // driver wrote, from a file that nobody else may write to (`cache_file::read`).
    unsafe { device.create_pipeline_cache(&info, None) }
}

/// `torch-dml` in the user's cache directory, as the system's variables name it, else nowhere.
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
