//! Subnormal numbers without arithmetic on them, which an adapter may flush: their bits as if the exponent field went on
//! below 1.

use super::{MIN_NORMAL, ONE};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// Bits (i32) of a magnitude given by its bits (u32), with an exponent field down to -22 where it is subnormal, so that
/// the significand has its leading one. Of zero the field is -126.
pub(super) fn normalized(magnitude: Value<'_>) -> Value<'_> {
    // A subnormal m * 2^-149 becomes m * 2^-23.
    let lifted = ((magnitude | ONE).bitcast(F32) - 1.0).bitcast(I32) - (126 << 23);
    magnitude.lt(MIN_NORMAL).select(lifted, magnitude.bitcast(I32))
}

/// Bits (u32) of a positive number whose exponent field may be as low as -148: below 1 it is rounded to the nearest
/// subnormal number, or to the least normal one.
pub(super) fn denormalized(bits: Value<'_>) -> Value<'_> {
    // A multiple of 2^-149 is its own bits.
    let units = (bits + (149 << 23)).bitcast(F32).round().cast(U32);
    bits.lt(MIN_NORMAL as i32).select(units, bits.bitcast(U32))
}
