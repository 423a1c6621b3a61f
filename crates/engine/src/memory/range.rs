//! Ranges of addresses.

/// The bytes `[start, end)` by GPU address, in the memory of one device. The owner of a range knows
/// the device; a range that may belong to several devices is a [`DeviceRange`].
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

    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        self.end - self.start
    }

    /// Whether the ranges share a byte. An empty range overlaps nothing.
    #[inline]
    pub fn overlaps(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// Whether the other range is inside this one.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A range of one device's memory. An address does not identify a device: memory of two devices may
/// have equal addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRange {
    /// The device's index.
    pub device: usize,
    /// The bytes.
    pub range: AddressRange,
}

impl DeviceRange {
    /// `bytes` bytes from an address of a device.
    pub fn new(device: usize, start: u64, bytes: u64) -> Self {
        Self { device, range: AddressRange::new(start, bytes) }
    }

    /// Whether the ranges share a byte: same device, same address.
    #[inline]
    pub fn overlaps(self, other: Self) -> bool {
        self.device == other.device && self.range.overlaps(other.range)
    }

    /// Whether the other range is inside this one.
    pub fn contains(self, other: Self) -> bool {
        self.device == other.device && self.range.contains(other.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_where_they_share_a_byte() {
        let range = |start, end| AddressRange { start, end };
        for (a, b, expected) in [
            (range(0, 4), range(3, 8), true),
            (range(0, 4), range(4, 8), false),
            (range(0, 8), range(2, 4), true),
            (range(2, 2), range(0, 8), false),
            (range(0, 0), range(0, 0), false),
        ] {
            assert_eq!((a.overlaps(b), b.overlaps(a)), (expected, expected), "{a:?} {b:?}");
        }
        assert!(range(0, 8).contains(range(4, 8)) && !range(0, 8).contains(range(4, 9)));
        assert_eq!(AddressRange::new(5, 3).bytes(), 3);
    }

    #[test]
    fn equal_addresses_of_two_devices_are_different_memory() {
        let [one, other] = [0, 1].map(|device| DeviceRange::new(device, 0x1000, 64));
        assert_eq!(one.range, other.range);
        assert!(one != other && !one.overlaps(other) && !one.contains(other));
        assert!(one.overlaps(one) && one.contains(DeviceRange::new(0, 0x1010, 16)));
    }
}
