//! The layout of a file: a header of 64 bytes, and the content.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic and format version |
//! | 8..12, 12..16, 16..20 | vendor, device, driver version |
//! | 20..24 | the writer's version; 0 if it does not matter |
//! | 24..40 | the driver's cache UUID |
//! | 40..48 | length of the content |
//! | 48..56 | checksum of the content |
//! | 56..64 | checksum of bytes 0..56 |

use super::identity::{FileIdentity, FileKind};

const HEADER_BYTES: usize = 64;

/// The header of the file with this content. It depends on every byte of the content, so a header
/// and a content that belong together are a file as it was written.
fn header(kind: FileKind, identity: &FileIdentity, content: &[u8]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &kind.magic);
    put(8, &identity.vendor.to_le_bytes());
    put(12, &identity.device.to_le_bytes());
    put(16, &identity.driver.to_le_bytes());
    put(20, &kind.version.to_le_bytes());
    put(24, &identity.uuid);
    put(40, &(content.len() as u64).to_le_bytes());
    put(48, &checksum(content).to_le_bytes());
    let sum = checksum(&header[..56]);
    header[56..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The bytes of a file.
pub(super) fn encode(kind: FileKind, identity: &FileIdentity, content: &[u8]) -> Vec<u8> {
    [&header(kind, identity, content)[..], content].concat()
}

/// The content of a file; `None` unless the file is what [`encode`] returns for this kind and
/// identity.
pub(super) fn decode(kind: FileKind, identity: &FileIdentity, mut file: Vec<u8>) -> Option<Vec<u8>> {
    let (found, content) = file.split_at_checked(HEADER_BYTES)?;
    if found != header(kind, identity, content) {
        return None;
    }
    file.drain(..HEADER_BYTES);
    Some(file)
}

/// A multiplicative hash, eight bytes a step. It detects damage, not forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
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
    use crate::disk_cache::tests::{KIND, content, identity};

    fn is_sound(file: &[u8], kind: FileKind, identity: &FileIdentity) -> bool {
        decode(kind, identity, file.to_vec()).is_some()
    }

    #[test]
    fn what_was_written_is_sound() {
        let file = encode(KIND, &identity(), &content());
        assert_eq!(decode(KIND, &identity(), file), Some(content()));
    }

    #[test]
    fn truncated_files_are_refused() {
        let file = encode(KIND, &identity(), &content());
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length], KIND, &identity()), "{length} bytes");
        }
        let mut longer = file;
        longer.push(0);
        assert!(!is_sound(&longer, KIND, &identity()));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let file = encode(KIND, &identity(), &content());
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(!is_sound(&damaged, KIND, &identity()), "byte {at}");
        }
    }

    #[test]
    fn files_of_another_driver_are_refused() {
        let file = encode(KIND, &identity(), &content());
        let newer = FileIdentity { driver: 8, ..identity() };
        assert!(!is_sound(&file, KIND, &newer));
        assert_ne!(newer.file_name(KIND), identity().file_name(KIND));
        for kind in [FileKind { version: 1, ..KIND }, FileKind { magic: *b"TDMLNO\x00\x01", ..KIND }] {
            assert!(!is_sound(&file, kind, &identity()), "{kind:?}");
        }
    }
}
