//! Classification of floats by their bits: comparisons may flush a subnormal number to zero.

use super::Value;
use crate::types::ScalarType;

impl<'b> Value<'b> {
    /// Whether a float is NaN, by its bits; false for other types.
    pub fn is_nan(self) -> Value<'b> {
        self.b.function("is_nan", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).gt(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).gt(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(false),
        })
    }

    /// Whether a float is infinite, by its bits; false for other types.
    pub fn is_inf(self) -> Value<'b> {
        self.b.function("is_inf", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).eq(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).eq(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(false),
        })
    }

    /// Whether a float is neither NaN nor infinite, by its bits; true for other types.
    pub fn is_finite(self) -> Value<'b> {
        self.b.function("is_finite", &[self], || match self.scalar() {
            ScalarType::F32 => (self.bitcast(ScalarType::U32) & 0x7fff_ffffu32).lt(0x7f80_0000u32),
            ScalarType::F64 => (self.bitcast(ScalarType::U64) & (u64::MAX >> 1)).lt(0x7ff0_0000_0000_0000u64),
            _ => self.b.bool(true),
        })
    }

    /// Whether a float is zero, by its bits: a comparison may flush a subnormal number to 0.
    pub fn is_zero(self) -> Value<'b> {
        self.b.function("is_zero", &[self], || (self.bitcast(self.scalar().unsigned()) << 1).eq(0))
    }

    /// Whether a float is above zero, by its bits.
    pub fn is_above_zero(self) -> Value<'b> {
        self.b.function("is_above_zero", &[self], || {
            let unsigned = self.scalar().unsigned();
            let infinity = self.like(f64::INFINITY).bitcast(unsigned);
            (self.bitcast(unsigned) - 1).lt(infinity)
        })
    }

    /// Whether a float is below zero, by its bits.
    pub fn is_below_zero(self) -> Value<'b> {
        self.b.function("is_below_zero", &[self], || {
            let unsigned = self.scalar().unsigned();
            let (zero, infinity) = (self.like(-0.0), self.like(f64::INFINITY));
            (self.bitcast(unsigned) - (zero.bitcast(unsigned) + 1)).lt(infinity.bitcast(unsigned))
        })
    }
}
