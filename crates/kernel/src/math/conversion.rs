//! Conversions between float types that keep subnormal numbers on every adapter.

use crate::builder::Value;
use crate::types::ScalarType;

/// `cast`, which is `x` converted from one float type to another, where no f32 number involved is
/// subnormal; there it is made of integers, because an adapter may flush it.
pub fn with_subnormals<'b>(x: Value<'b>, cast: Value<'b>) -> Value<'b> {
    const LEAST_NORMAL: f64 = f32::MIN_POSITIVE as f64;
    if x.scalar() == ScalarType::F32 {
        let bits = x.bitcast(ScalarType::U32);
        let magnitude = bits & 0x7fff_ffffu32;
        let exact = (magnitude.cast(ScalarType::F64) * 2f64.powi(-149)).bitcast(ScalarType::U64);
        let sign = (bits >> 31).cast(ScalarType::U64) << 63;
        return magnitude.lt(0x0080_0000u32).select((exact | sign).bitcast(ScalarType::F64), cast);
    }
    let bits = x.bitcast(ScalarType::U64);
    let magnitude = bits & (u64::MAX >> 1);
    // A multiple of 2^-149 is its own bits.
    let units = (magnitude.bitcast(ScalarType::F64) * 2f64.powi(149)).round().cast(ScalarType::U32);
    let sign = (bits >> 32).cast(ScalarType::U32) & 0x8000_0000u32;
    magnitude.lt(LEAST_NORMAL.to_bits()).select((units | sign).bitcast(ScalarType::F32), cast)
}
