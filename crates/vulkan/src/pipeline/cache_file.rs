//! The file of a pipeline cache.
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

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::adapter::AdapterShared;
use crate::error::Error;

const MAGIC: &[u8; 8] = b"TDMLPC\x00\x01";
const HEADER: usize = 64;

/// Whose pipelines a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    vendor: u32,
    device: u32,
    driver: u32,
    uuid: [u8; 16],
}

impl Identity {
    pub(super) fn of(adapter: &AdapterShared) -> Self {
        Self {
            vendor: adapter.info.vendor_id,
            device: adapter.info.device_id,
            driver: adapter.info.driver_version,
            uuid: adapter.cache_uuid,
        }
    }

    pub(super) fn file_name(&self) -> String {
        let uuid: String = self.uuid.iter().map(|b| format!("{b:02x}")).collect();
        format!("pipelines-{:04x}-{:04x}-{:08x}-{uuid}.bin", self.vendor, self.device, self.driver)
    }
}

/// The blob of a file, if there is a sound one.
pub(super) fn read(path: &Path, identity: &Identity) -> Option<Vec<u8>> {
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

/// Writes a blob through a temporary file and a rename.
pub(super) fn write(path: &Path, identity: &Identity, blob: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, &e))?;
    let temporary =
        path.with_extension(format!("{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let written = fs::File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(&encode(identity, blob))?;
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
pub(super) fn checksum(bytes: &[u8]) -> u64 {
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
}
