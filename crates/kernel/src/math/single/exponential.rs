//! The exponential function and related functions.
//!
//! `x = k ln 2 + r` with |r| at most ln(2) / 2 (Cody and Waite), `e^r = 1 + r + r^2 Q(r)` with Q
//! minimax (Remez), and the rounding errors of the leading sum are added. Powers of two are applied
//! to the exponent field.

use super::exact::{Sum, fast_two_sum, head, polynomial, two_product, two_sum};
use super::subnormal::denormalized;
use super::{INF, MAGNITUDE, NAN, SIGN, ratio, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// ln 2 to 15 bits, so that products with exponents are exact, and the remainder.
pub(super) const LN2: [f64; 2] = [0.693_145_751_953_125, 1.428_606_820_309_417_2e-6];

/// An argument reduced by a multiple of ln 2.
pub(super) struct Reduced<'b> {
    /// The multiple, as i32.
    pub k: Value<'b>,
    /// The reduced argument, in twice the precision.
    pub r: Sum<'b>,
}

pub(super) fn reduce(x: Value<'_>) -> Reduced<'_> {
    let k = (x * std::f64::consts::LOG2_E).round();
    // Exact: the product has 23 bits, and the difference is a small multiple of the last bit of x
    // or of the product.
    let high = x - k * LN2[0];
    let low = k * LN2[1];
    let hi = high - low;
    Reduced { k: k.cast(I32), r: Sum { hi, lo: (high - hi) - low } }
}

/// `a + (e^r - 1)`: an unevaluated sum, for `a` zero or at least 1/2 in magnitude.
fn exponential_sum<'b>(a: Value<'b>, r: Sum<'b>, c: &[f64]) -> Sum<'b> {
    let s = fast_two_sum(a, r.hi);
    let square = r.hi * r.hi;
    Sum { hi: s.hi, lo: s.lo + (square * polynomial(r.hi, c) + r.lo) }
}

/// `(e^r - 1 - r) / r^2` within 2^-27 of e^r.
const EXP: [f64; 5] = [0.5, 0.166_665_182, 0.041_666_202_2, 0.008_369_020_19, 0.001_395_070_69];
/// The same within 2^-28 of `e^r - 1`.
const EXPM1: [f64; 6] = [0.5, 0.166_666_672, 0.041_666_351_3, 0.008_333_272_3, 0.001_394_125_98, 0.000_199_145_899];

/// `x` between two bounds; NaN becomes the lower one.
pub(super) fn clamp(x: Value<'_>, low: f64, high: f64) -> Value<'_> {
    x.max(low).min(high)
}

/// Bits of `y * 2^k` for a positive `y` near 1 and a k from -250, infinity above the range.
pub(super) fn scaled<'b>(y: Value<'b>, k: Value<'b>) -> Value<'b> {
    denormalized((y.bitcast(I32) + (k << 23)).min(INF as i32))
}

/// `e^(x + lo) * 2^-k` and k, for x of -125 to 102 and a lo of a few of its ulp at most.
pub(super) fn exp_sum<'b>(x: Value<'b>, lo: Option<Value<'b>>) -> (Sum<'b>, Value<'b>) {
    let Reduced { k, r } = reduce(x);
    let r = lo.map_or(r, |lo| two_sum(r.hi, r.lo + lo));
    let y = exponential_sum(x.like(1.0), r, &EXP);
    (fast_two_sum(y.hi, y.lo), k)
}

/// `e^x * factor` of sums, for a factor of 2^-20 to 1; NaN becomes zero.
pub(in crate::math) fn exp_times<'b>(x: (Value<'b>, Value<'b>), factor: (Value<'b>, Value<'b>)) -> Value<'b> {
    let clamped = clamp(x.0, -125.0, 102.0);
    let lo = x.0.eq(clamped).select(x.1, clamped.like(0.0));
    let (y, k) = exp_sum(clamped, Some(lo));
    let p = two_product(y.hi, factor.0);
    let y = p.hi + (p.lo + (y.hi * factor.1 + y.lo * factor.0));
    // For large k the bits would exceed those of infinity and wrap around.
    let overflows = ((y.bitcast(I32) >> 23) + k).gt(254);
    select_bits(overflows, INF, denormalized(y.bitcast(I32) + (k << 23)))
}

/// `e^x`, within 0.75 ulp.
pub fn exp(x: Value<'_>) -> Value<'_> {
    exp_scaled(x, 0)
}

/// `e^x * 2^n` for an n of 0 to 64; no bits are lost where `e^x` alone would be subnormal.
pub(in crate::math) fn exp_scaled(x: Value<'_>, n: u32) -> Value<'_> {
    let Reduced { k, r } = reduce(clamp(x, -104.0 - 0.7 * f64::from(n), 89.0));
    let y = exponential_sum(x.like(1.0), r, &EXP);
    let k = if n == 0 { k } else { k + n as i32 };
    select_bits(x.is_nan(), NAN, scaled(y.hi + y.lo, k))
}

/// `2^x`, within 0.7 ulp.
pub fn exp2(x: Value<'_>) -> Value<'_> {
    let limited = clamp(x, -150.0, 128.4);
    let k = limited.round();
    let r = limited - k;
    // r ln 2: the product of the leading parts is exact.
    let rh = head(r, 12);
    let low = (r - rh) * LN2_HEAD[0] + r * LN2_HEAD[1];
    let s = fast_two_sum(x.like(1.0), rh * LN2_HEAD[0]);
    let y = s.hi + (s.lo + (r * r * polynomial(r, &EXP2) + low));
    select_bits(x.is_nan(), NAN, scaled(y, k.cast(I32)))
}

/// ln 2 to 12 bits, and the remainder.
const LN2_HEAD: [f64; 2] = [0.693_115_234_375, 3.194_618_494_530_941_7e-5];
/// `(2^r - 1 - r ln 2) / r^2` within 2^-27 of 2^r.
const EXP2: [f64; 5] = [0.240_226_507, 0.055_503_618, 0.009_618_023_41, 0.001_339_038_48, 0.000_154_717_942];

/// `(e^x - 1) * 2^-k` and k, for x of -19 to 89.
pub(super) fn expm1_sum(x: Value<'_>) -> (Sum<'_>, Value<'_>) {
    let Reduced { k, r } = reduce(x);
    // 1 - 2^-k; the power stays normal.
    let power = ((-k + 127).max(1) << 23).bitcast(F32);
    let a = two_sum(x.like(1.0), -power);
    let y = exponential_sum(a.hi, r, &EXPM1);
    (Sum { hi: y.hi, lo: y.lo + a.lo }, k)
}

/// `e^x - 1`, within 1 ulp.
pub fn expm1(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let (y, k) = expm1_sum(clamp(x, -19.0, 89.0));
    let result = ((y.hi + y.lo).bitcast(I32) + (k << 23)).min(INF).bitcast(U32);
    let result = magnitude.lt(0x3300_0000).select(bits, result);
    select_bits(magnitude.gt(INF), NAN, result)
}

/// `1 / (1 + e^-x)`, within 0.75 ulp.
pub fn sigmoid(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let negative = (bits & SIGN).ne(0);
    // With e = e^-|x|: 1 / (1 + e) for a positive x, e / (1 + e) for a negative one.
    let (y, k) = exp_sum(-clamp(x.abs(), 0.0, 104.0), None);
    let power = ((k.max(-60) + 127) << 23).bitcast(F32);
    let d = fast_two_sum(x.like(1.0), y.hi * power);
    let denominator = Sum { hi: d.hi, lo: d.lo + y.lo * power };
    let zero = x.like(0.0);
    let numerator = Sum { hi: negative.select(y.hi, 1.0), lo: negative.select(y.lo, zero) };
    let q = ratio(numerator, denominator);
    let k = negative.select(k, b.i32(0));
    select_bits(x.is_nan(), NAN, scaled(q.hi + q.lo, k))
}
