//! The driver's pipeline cache, filled from a file and saved to it.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;
use dml_gpu::{CacheFile, FileIdentity, FileKind, checksum};

use crate::device::DeviceShared;
use crate::error::{Error, from_vk};

const PIPELINES: FileKind = FileKind {
    name: "pipelines",
    magic: *b"TDMLPC\x00\x01",
    version: 0,
    // Caches of drivers have tens of megabytes.
    most_bytes: 1 << 30,
};

/// The driver's pipeline cache and its file.
pub(super) struct PipelineCache {
    raw: vk::PipelineCache,
    device: Arc<DeviceShared>,
    file: Option<CacheFile>,
    compiled: AtomicU64,
    saved: Mutex<Saved>,
}

struct Saved {
    /// The number of compiled pipelines when the file was last written.
    compiled: u64,
    /// Checksum of the blob that was last read from or written to the file.
    checksum: Option<u64>,
}

impl PipelineCache {
    /// Creates the cache, with the content of the file if that is sound. Never fails: without a
    /// cache, only compilation is slower.
    pub(super) fn load(device: &Arc<DeviceShared>, folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| CacheFile::new(device.adapter.files.clone(), folder, PIPELINES));
        let blob = file.as_ref().and_then(read);
        let checksum = blob.as_deref().map(checksum);
        let raw = create(&device.raw, blob.as_deref().unwrap_or(&[])).or_else(|_| create(&device.raw, &[]));
        Self {
            raw: raw.unwrap_or_else(|error| {
                tracing::debug!("no pipeline cache: vkCreatePipelineCache failed: {error:?}");
                vk::PipelineCache::null()
            }),
            device: Arc::clone(device),
            file,
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

    /// Writes the file if pipelines were compiled since, through a temporary file and a rename.
    pub(super) fn save(&self) -> Result<(), Error> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = self.compiled.load(Ordering::Relaxed);
        let Some(file) = &self.file else {
            return Ok(());
        };
        if compiled == saved.compiled || self.raw == vk::PipelineCache::null() {
            return Ok(());
        }
        // Another process may have saved since: its pipelines are kept.
        let other = read(file).filter(|b| saved.checksum != Some(checksum(b)));
        let blob = match other {
            Some(other) => self.merged_data(&other),
            // SAFETY: the cache belongs to this device and is not null. Other threads may compile
            // into it meanwhile: the driver synchronises.
            None => unsafe { self.device.raw.get_pipeline_cache_data(self.raw) },
        }
        .map_err(|e| from_vk("vkGetPipelineCacheData", e))?;
        let sum = checksum(&blob);
        if saved.checksum != Some(sum) {
            if let Err(error) = file.write(&blob) {
                file.warn_once(&format!("pipelines are not saved to it: {error}"));
                return Ok(());
            }
            tracing::debug!("saved {} bytes of pipelines to {}", blob.len(), file.path().display());
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
        // SAFETY: both caches belong to this device and are not null. `merged`, which must not be
        // used meanwhile, has no other user; the driver synchronises the other cache.
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
        // SAFETY: the cache belongs to this device, or is null, which is ignored. It is used only
        // during calls, and this is its last owner.
        unsafe { self.device.raw.destroy_pipeline_cache(self.raw, None) };
    }
}

/// The blob of a file, if the blob belongs to the file's device.
fn read(file: &CacheFile) -> Option<Vec<u8>> {
    let blob = file.read()?;
    if is_of(&blob, file.identity()) {
        return Some(blob);
    }
    file.warn_once("it holds another device's pipelines; they are not read");
    None
}

fn create(device: &ash::Device, blob: &[u8]) -> Result<vk::PipelineCache, vk::Result> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(blob);
    // SAFETY: the device is valid; the blob lives through the call. It is empty, or by its header
    // and checksum it was written by this driver, to a file that nobody else may write to
    // (`CacheFile::read`).
    unsafe { device.create_pipeline_cache(&info, None) }
}

/// Whether the blob's own header (`VkPipelineCacheHeaderVersionOne`) names the device of its file.
fn is_of(blob: &[u8], identity: &FileIdentity) -> bool {
    blob.len() >= 32
        && blob[4..8] == 1u32.to_ne_bytes()
        && blob[8..12] == identity.vendor.to_ne_bytes()
        && blob[12..16] == identity.device.to_ne_bytes()
        && blob[16..32] == identity.uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_of_other_devices_are_refused() {
        let identity = FileIdentity { vendor: 0x10DE, device: 0x2330, driver: 7, uuid: [3; 16] };
        let mut blob = 32u32.to_ne_bytes().to_vec();
        blob.extend_from_slice(&1u32.to_ne_bytes());
        blob.extend_from_slice(&identity.vendor.to_ne_bytes());
        blob.extend_from_slice(&identity.device.to_ne_bytes());
        blob.extend_from_slice(&identity.uuid);
        assert!(is_of(&blob, &identity));
        assert!(!is_of(&blob[..31], &identity));
        assert!(!is_of(&blob, &FileIdentity { device: 1, ..identity.clone() }));
        assert!(!is_of(&blob, &FileIdentity { uuid: [4; 16], ..identity }));
    }
}
