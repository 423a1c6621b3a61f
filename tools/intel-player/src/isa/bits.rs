//! Bits of an instruction.

/// The 128 bits of an instruction.
pub type Bits = u128;

/// The field from its last bit down to its first.
#[inline]
#[must_use]
pub fn field(bits: Bits, last: u32, first: u32) -> u64 {
    (bits >> first) as u64 & (u64::MAX >> (63 - (last - first)))
}

/// Whether a bit is set.
#[inline]
#[must_use]
pub fn bit(bits: Bits, at: u32) -> bool {
    bits >> at & 1 != 0
}
