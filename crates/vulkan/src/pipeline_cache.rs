//! Compiled pipelines on disk.
//!
//! A file is a header of 64 bytes, then the driver's blob. The header says which adapter and driver
//! wrote the blob, how long it is, and its checksum: a driver may crash on a blob that it did not
//! write, so nothing reaches it that is not exactly what it wrote.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic and format version |
//! | 8..12, 12..16, 16..20 | vendor, device, driver version |
//! | 20..24 | zero |
//! | 24..40 | the driver's cache UUID |
//! | 40..48 | length of the blob |
//! | 48..56 | checksum of the blob |
//! | 56..64 | checksum of bytes 0..56 |

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ash::vk;

use crate::adapter::AdapterCore;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"TDMLPC\x00\x01";
const HEADER: usize = 64;

/// Whose pipelines a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    vendor: u32,
    device: u32,
    driver: u32,
    uuid: [u8; 16],
}

impl Identity {
    fn of(adapter: &AdapterCore) -> Self {
        Self {
            vendor: adapter.info.vendor_id,
            device: adapter.info.device_id,
            driver: adapter.info.driver_version,
            uuid: adapter.cache_uuid,
        }
    }

    fn file_name(&self) -> String {
        let uuid: String = self.uuid.iter().map(|b| format!("{b:02x}")).collect();
        format!("pipelines-{:04x}-{:04x}-{:08x}-{uuid}.bin", self.vendor, self.device, self.driver)
    }
}

/// The driver's pipeline cache and its file.
pub(crate) struct PipelineCache {
    raw: vk::PipelineCache,
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
    pub(crate) fn load(device: &ash::Device, adapter: &AdapterCore, directory: Option<PathBuf>) -> Self {
        let identity = Identity::of(adapter);
        let path = directory
            .or_else(|| default_directory(|name| std::env::var_os(name)))
            .map(|directory| directory.join(identity.file_name()));
        let blob = path.as_deref().and_then(|path| read(path, &identity));
        let checksum = blob.as_deref().map(checksum);
        let raw = create(device, blob.as_deref().unwrap_or(&[])).or_else(|_| create(device, &[]));
        Self {
            raw: raw.unwrap_or_else(|error| {
                tracing::debug!("no pipeline cache: vkCreatePipelineCache failed: {error:?}");
                vk::PipelineCache::null()
            }),
            identity,
            path,
            compiled: AtomicU64::new(0),
            saved: Mutex::new(Saved { compiled: 0, checksum }),
        }
    }

    pub(crate) fn raw(&self) -> vk::PipelineCache {
        self.raw
    }

    pub(crate) fn note_compiled(&self) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the file if something was compiled since, through a temporary file and a rename.
    pub(crate) fn save(&self, device: &ash::Device, adapter: &AdapterCore) -> Result<(), Error> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = self.compiled.load(Ordering::Relaxed);
        let Some(path) = &self.path else {
            return Ok(());
        };
        if compiled == saved.compiled || self.raw == vk::PipelineCache::null() {
            return Ok(());
        }
        // Another process may have saved since: keep its pipelines too.
        let other = read(path, &self.identity).filter(|b| saved.checksum != Some(checksum(b)));
        let blob = match other {
            Some(other) => self.merged_data(device, &other),
            // SAFETY: the cache is of this device.
            None => unsafe { device.get_pipeline_cache_data(self.raw) },
        }
        .map_err(|e| Error::from_vk("vkGetPipelineCacheData", e))?;
        let sum = checksum(&blob);
        if saved.checksum != Some(sum) {
            if let Err(error) = write(path, &encode(&self.identity, &blob)) {
                tracing::debug!("the pipelines of {} were not saved: {error}", adapter.info.name);
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
    fn merged_data(&self, device: &ash::Device, blob: &[u8]) -> Result<Vec<u8>, vk::Result> {
        let merged = create(device, blob)?;
        // SAFETY: both caches are of this device, and nobody else knows `merged`.
        unsafe {
            let data =
                device.merge_pipeline_caches(merged, &[self.raw]).and_then(|()| device.get_pipeline_cache_data(merged));
            device.destroy_pipeline_cache(merged, None);
            data
        }
    }

    /// # Safety
    /// Nothing of the device uses the cache any more.
    pub(crate) unsafe fn destroy(&self, device: &ash::Device) {
        // SAFETY: the caller guarantees it.
        unsafe { device.destroy_pipeline_cache(self.raw, None) };
    }
}

fn create(device: &ash::Device, blob: &[u8]) -> Result<vk::PipelineCache, vk::Result> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(blob);
    // SAFETY: the device is valid; the blob lives through the call and is one that this driver wrote.
    unsafe { device.create_pipeline_cache(&info, None) }
}

/// `TORCH_DML_CACHE_DIR`, else `torch-dml` in the user's cache directory, else nowhere.
fn default_directory(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let get = |name| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(directory) = get("TORCH_DML_CACHE_DIR") {
        return Some(directory);
    }
    let base = if cfg!(windows) {
        get("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        get("HOME").map(|home| home.join("Library/Caches"))
    } else {
        get("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| get("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("torch-dml"))
}

fn read(path: &Path, identity: &Identity) -> Option<Vec<u8>> {
    let mut file = match fs::read(path) {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::debug!("{}", Error::io(path, &error));
            }
            return None;
        }
    };
    if !is_sound(&file, identity) {
        tracing::debug!("{} is damaged or foreign, and ignored", path.display());
        return None;
    }
    file.drain(..HEADER);
    Some(file)
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, &e))?;
    let temporary =
        path.with_extension(format!("{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let written = fs::File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .map_err(|e| Error::io(&temporary, &e))
        .and_then(|()| fs::rename(&temporary, path).map_err(|e| Error::io(path, &e)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn encode(identity: &Identity, blob: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + blob.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&identity.vendor.to_le_bytes());
    file.extend_from_slice(&identity.device.to_le_bytes());
    file.extend_from_slice(&identity.driver.to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(&identity.uuid);
    file.extend_from_slice(&(blob.len() as u64).to_le_bytes());
    file.extend_from_slice(&checksum(blob).to_le_bytes());
    let head = checksum(&file);
    file.extend_from_slice(&head.to_le_bytes());
    file.extend_from_slice(blob);
    file
}

/// The file is what [`encode`] makes of some blob for this identity, and the blob's own header
/// (`VkPipelineCacheHeaderVersionOne`) names the same device.
fn is_sound(file: &[u8], identity: &Identity) -> bool {
    let Some((header, blob)) = file.split_at_checked(HEADER) else {
        return false;
    };
    if encode(identity, &[])[..40] != header[..40] {
        return false;
    }
    let word = |at: usize| header[at..at + 8].iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b));
    word(40) == blob.len() as u64
        && word(56) == checksum(&header[..56])
        && word(48) == checksum(blob)
        && driver_header_matches(blob, identity)
}

fn driver_header_matches(blob: &[u8], identity: &Identity) -> bool {
    blob.len() >= 32
        && blob[4..8] == 1u32.to_ne_bytes()
        && blob[8..12] == identity.vendor.to_ne_bytes()
        && blob[12..16] == identity.device.to_ne_bytes()
        && blob[16..32] == identity.uuid
}

/// A multiplicative hash, eight bytes a step. It guards against damage, not against malice.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(PRIME);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = step(PRIME, bytes.len() as u64);
    for word in words {
        hash = step(hash, u64::from_le_bytes(*word));
    }
    rest.iter().fold(hash, |hash, &byte| step(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { vendor: 0x10DE, device: 0x2330, driver: 7, uuid: [3; 16] }
    }

    fn blob(identity: &Identity) -> Vec<u8> {
        let mut blob = 32u32.to_ne_bytes().to_vec();
        blob.extend_from_slice(&1u32.to_ne_bytes());
        blob.extend_from_slice(&identity.vendor.to_ne_bytes());
        blob.extend_from_slice(&identity.device.to_ne_bytes());
        blob.extend_from_slice(&identity.uuid);
        blob.extend((0..1003u32).map(|i| i as u8));
        blob
    }

    #[test]
    fn what_was_written_is_sound() {
        let file = encode(&identity(), &blob(&identity()));
        assert!(is_sound(&file, &identity()));
    }

    #[test]
    fn truncated_files_are_refused() {
        let file = encode(&identity(), &blob(&identity()));
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length], &identity()), "{length} bytes");
        }
        let mut longer = file;
        longer.push(0);
        assert!(!is_sound(&longer, &identity()));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let file = encode(&identity(), &blob(&identity()));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(!is_sound(&damaged, &identity()), "byte {at}");
        }
    }

    #[test]
    fn files_of_another_driver_are_refused() {
        let file = encode(&identity(), &blob(&identity()));
        let newer = Identity { driver: 8, ..identity() };
        assert!(!is_sound(&file, &newer));
        assert_ne!(newer.file_name(), identity().file_name());
        // A sound file around another device's blob.
        let other = Identity { device: 1, ..identity() };
        assert!(!is_sound(&encode(&identity(), &blob(&other)), &identity()));
    }

    #[test]
    fn the_directory_comes_from_the_environment() {
        let explicit = default_directory(|name| (name == "TORCH_DML_CACHE_DIR").then(|| OsString::from("somewhere")));
        assert_eq!(explicit, Some(PathBuf::from("somewhere")));
        let base = if cfg!(windows) { "C:\\cache" } else { "/cache" };
        let user =
            default_directory(|name| matches!(name, "XDG_CACHE_HOME" | "LOCALAPPDATA").then(|| OsString::from(base)));
        if !cfg!(target_os = "macos") {
            assert_eq!(user, Some(Path::new(base).join("torch-dml")));
        }
        assert_eq!(default_directory(|_| None), None);
    }
}
