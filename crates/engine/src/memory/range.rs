//! Bytes by their address.

/// Bytes `[start, end)` by GPU address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl AddressRange {
    /// `bytes` bytes from `start`.
    pub fn new(start: u64, bytes: u64) -> Self {
        Self { start, end: start + bytes }
    }
}
