//! Hyperbolic functions.

use super::exact::{Sum, fast_two_sum, polynomial, two_sum};
use super::exponential::{Reduced, clamp, expm1_sum, reduce};
use super::{INF, MAGNITUDE, NAN, SIGN, ratio, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// Hyperbolic tangent, within 0.85 ulp: `-t / (2 + t)` with `t = e^(-2 |x|) - 1`.
pub fn tanh(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let limited = clamp(magnitude.bitcast(F32), 0.000_1, 9.5);
    let (t, k) = expm1_sum(limited * -2.0);
    let t = fast_two_sum(t.hi, t.lo);
    let power = ((k + 127) << 23).bitcast(F32);
    let (hi, lo) = (t.hi * power, t.lo * power);
    let d = fast_two_sum(x.like(2.0), hi);
    let q = ratio(Sum { hi: -hi, lo: -lo }, Sum { hi: d.hi, lo: d.lo + lo });
    let result = (q.hi + q.lo).bitcast(U32) | (bits & SIGN);
    // x - x^3 / 3 rounds to x.
    let result = magnitude.lt(0x3980_0000).select(bits, result);
    select_bits(magnitude.gt(INF), NAN, result)
}

/// `(sinh(r) - r) / r^3` and `(cosh(r) - 1 - r^2/2) / r^4` as polynomials in r^2 for |r| up to
/// ln(2) / 2.
const SINH: [f64; 3] = [0.166_666_672, 0.008_333_176_37, 0.000_199_730_013];
const COSH: [f64; 2] = [0.041_666_455_6, 0.001_393_584_19];

/// With |x| = k ln 2 + r: sinh(r) and cosh(r) - 1 as sums, `2^-2k` (or a negligible number), and k.
fn parts(magnitude: Value<'_>) -> (Sum<'_>, Value<'_>, Value<'_>, Value<'_>) {
    let Reduced { k, r } = reduce(clamp(magnitude.bitcast(F32), 0.0, 90.0));
    let z = r.hi * r.hi;
    let sinh = Sum { hi: r.hi, lo: z * r.hi * polynomial(z, &SINH) + r.lo };
    let cosh = z * 0.5 + (z * z * polynomial(z, &COSH) + r.hi * r.lo);
    let power = ((k.min(60) * -2 + 127) << 23).bitcast(F32);
    (sinh, cosh, power, k)
}

/// Bits of `y * 2^(k - 1)` for a `y` of 0.3 and more, or k = 0.
fn half_scaled<'b>(y: Value<'b>, k: Value<'b>) -> Value<'b> {
    (y.bitcast(I32) + ((k - 1) << 23)).min(INF).bitcast(U32)
}

/// Hyperbolic sine, within 1 ulp: `2^(k-1) ((1 - p) cosh(r) + (1 + p) sinh(r))` with `p = 2^-2k`.
pub fn sinh(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let (sinh, cosh, p, k) = parts(magnitude);
    let a = 1.0 - p;
    let s = fast_two_sum(a, sinh.hi);
    let t = two_sum(s.hi, sinh.hi * p);
    let y = t.hi + (t.lo + (s.lo + (sinh.lo * (1.0 + p) + a * cosh)));
    let result = half_scaled(y, k) | (bits & SIGN);
    let result = magnitude.lt(0x3980_0000).select(bits, result);
    select_bits(magnitude.gt(INF), NAN, result)
}

/// Hyperbolic cosine, within 0.8 ulp: `2^(k-1) ((1 + p) cosh(r) + (1 - p) sinh(r))` with
/// `p = 2^-2k`.
pub fn cosh(x: Value<'_>) -> Value<'_> {
    let magnitude = x.bitcast(U32) & MAGNITUDE;
    let (sinh, cosh, p, k) = parts(magnitude);
    let s = fast_two_sum(x.like(1.0), sinh.hi);
    let t = two_sum(s.hi, p);
    let y = t.hi + (t.lo + (s.lo + ((sinh.lo * (1.0 - p) - sinh.hi * p) + cosh * (1.0 + p))));
    select_bits(magnitude.gt(INF), NAN, half_scaled(y, k))
}
