//! Operations on subnormal numbers without float arithmetic, which may flush them: by their bits,
//! with exponent fields below 1.

use super::{MAGNITUDE, MIN_NORMAL, ONE, SIGN};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// Bits (i32) of a magnitude given by its bits (u32), normalised: a subnormal number has an
/// exponent field down to -22, so that its significand has the leading one. For zero the field is
/// -126.
pub(super) fn normalized(magnitude: Value<'_>) -> Value<'_> {
    // A subnormal m * 2^-149 becomes m * 2^-23.
    let lifted = ((magnitude | ONE).bitcast(F32) - 1.0).bitcast(I32) - (126 << 23);
    magnitude.lt(MIN_NORMAL).select(lifted, magnitude.bitcast(I32))
}

/// Bits (u32) of a positive number whose exponent field may be as low as -148: below 1 it is
/// rounded to the nearest subnormal number, or to the least normal one.
pub(super) fn denormalized(bits: Value<'_>) -> Value<'_> {
    // The bits of a subnormal number are its multiple of 2^-149.
    let multiple = (bits + (149 << 23)).bitcast(F32).round().cast(U32);
    bits.lt(MIN_NORMAL as i32).select(multiple, bits.bitcast(U32))
}

/// `y * 2^-k` for a non-negative `y` and a `k` of 0 to 100, including subnormal results.
pub(in crate::math) fn lowered(y: Value<'_>, k: u32) -> Value<'_> {
    (y.is_inf() | y.is_nan()).select(y, denormalized(y.bitcast(I32) - ((k as i32) << 23)).bitcast(F32))
}

/// `x * factor` for a positive factor of 2^-100 to 2^60; `x` may be subnormal, and so may the
/// product if `x` is below 2^-63.
pub(in crate::math) fn product<'b>(x: Value<'b>, factor: Value<'b>) -> Value<'b> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    // Scaled by 2^126 and back.
    let small = magnitude.lt(0x2000_0000) & magnitude.ne(0);
    let lifted = (normalized(magnitude) + (126 << 23)).bitcast(F32) * factor;
    let result = denormalized(lifted.bitcast(I32) - (126 << 23)) | (bits & SIGN);
    small.select(result.bitcast(F32), x * factor)
}

/// `x + y`; both may be subnormal.
pub(in crate::math) fn sum<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let magnitude = |x: Value<'b>| x.bitcast(U32) & MAGNITUDE;
    // Scaled by 2^126 and back.
    let lifted = |x: Value<'b>| {
        let bits = (normalized(magnitude(x)) + (126 << 23)).bitcast(U32);
        (bits | (x.bitcast(U32) & SIGN)).bitcast(F32)
    };
    let total = lifted(x) + lifted(y);
    let result = denormalized(magnitude(total).bitcast(I32) - (126 << 23)) | (total.bitcast(U32) & SIGN);
    magnitude(x).max(magnitude(y)).lt(0x2000_0000).select(result.bitcast(F32), x + y)
}
