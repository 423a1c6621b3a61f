//! Conversions between float types that keep subnormal numbers on every adapter.

use crate::builder::Value;
use crate::types::ScalarType;

/// Corrects `cast`, the conversion of `x` from one float type to another: if the f32 is subnormal,
/// an adapter may flush it, and the result is computed by integer operations instead.
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
    // The bits of a subnormal number are its multiple of 2^-149.
    let multiple = (magnitude.bitcast(ScalarType::F64) * 2f64.powi(149)).round().cast(ScalarType::U32);
    let sign = (bits >> 32).cast(ScalarType::U32) & 0x8000_0000u32;
    magnitude.lt(LEAST_NORMAL.to_bits()).select((multiple | sign).bitcast(ScalarType::F32), cast)
}
