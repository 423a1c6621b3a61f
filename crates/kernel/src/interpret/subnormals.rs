//! The treatment of subnormal numbers.

use super::word::{bits32, narrow};
use crate::types::ScalarType;

/// The treatment of subnormal numbers by float instructions. Instructions that only move bits
/// (loads, stores, selects, bitcasts) always keep them.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Subnormals {
    /// Subnormal numbers are kept.
    Keep,
    /// As operands and results of arithmetic, comparisons, conversions and roundings, subnormal
    /// numbers are replaced by zeros of their sign. Vulkan allows this unless an adapter guarantees
    /// otherwise.
    Flush,
}

impl Subnormals {
    pub(super) fn f32(self, word: u64) -> f32 {
        let x = f32::from_bits(word as u32);
        if self == Subnormals::Flush && x.is_subnormal() { 0f32.copysign(x) } else { x }
    }

    pub(super) fn f64(self, word: u64) -> f64 {
        let x = f64::from_bits(word);
        if self == Subnormals::Flush && x.is_subnormal() { 0f64.copysign(x) } else { x }
    }

    pub(super) fn bits32(self, x: f32) -> u64 {
        bits32(self.f32(bits32(x)))
    }

    pub(super) fn bits64(self, x: f64) -> u64 {
        self.f64(x.to_bits()).to_bits()
    }

    /// The sum of two numbers of a type.
    pub(super) fn add(self, scalar: ScalarType, a: u64, b: u64) -> u64 {
        match scalar {
            ScalarType::F32 => self.bits32(self.f32(a) + self.f32(b)),
            ScalarType::F64 => self.bits64(self.f64(a) + self.f64(b)),
            integer => narrow(integer, a.wrapping_add(b)),
        }
    }
}
