//! Logarithms.
//!
//! `x = 2^k (1 + f)` with 1 + f between sqrt(1/2) and sqrt(2), `log(1 + f) = f - f^2/2 + f^3 P(f)`
//! with P minimax (Remez); k ln 2 + f is added without error. For other bases the sum, in twice the
//! precision, is multiplied.

use super::exact::{Sum, fast_two_sum, head, polynomial, two_sum};
use super::exponential::LN2;
use super::subnormal::normalized;
use super::{INF, MAGNITUDE, NAN, SIGN, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// `(log(1 + f) - f + f^2/2) / f^3`, within 2^-28 of `log(1 + f) / f`.
const LOG: [f64; 9] = [
    0.333_333_105,
    -0.249_999_866,
    0.200_021_461,
    -0.166_692_168,
    0.142_200_217,
    -0.123_855_568,
    0.118_651_39,
    -0.117_806_703,
    0.069_209_881_1,
];
/// Bits of sqrt(1/2).
const SQRT_HALF: u32 = 0x3f35_04f3;

/// A positive number, given by its [`normalized`] bits, as `2^k * (1 + f)`; k as i32.
fn reduce(bits: Value<'_>) -> (Value<'_>, Value<'_>) {
    let k = (bits - SQRT_HALF as i32) >> 23;
    let m = (bits - (k << 23)).bitcast(F32);
    (k, m - 1.0)
}

/// `log(1 + f) - f`
fn tail(f: Value<'_>) -> Value<'_> {
    let square = f * f;
    square * (f * polynomial(f, &LOG) - 0.5)
}

/// The special values: at zero (-inf), at infinity, for negative numbers and for NaN.
fn with_specials<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let result = bits.ge(INF).select(b.u32(NAN), y.bitcast(U32));
    let result = bits.eq(INF).select(bits, result);
    select_bits((bits & MAGNITUDE).eq(0), SIGN | INF, result)
}

/// Natural logarithm, within 0.95 ulp.
pub fn log(x: Value<'_>) -> Value<'_> {
    with_specials(x, log_of(normalized(x.bitcast(U32))))
}

/// The logarithm of a positive number that is normal.
pub(in crate::math) fn normal_log(x: Value<'_>) -> Value<'_> {
    log_of(x.bitcast(I32))
}

/// The logarithm of a positive number, given by its [`normalized`] bits.
fn log_of(bits: Value<'_>) -> Value<'_> {
    let (k, f) = reduce(bits);
    let k = k.cast(F32);
    let s = fast_two_sum(k * LN2[0], f);
    s.hi + (s.lo + (tail(f) + k * LN2[1]))
}

/// The logarithm of a positive number, and its rounding error; the relative error of the sum is
/// about 2^-29.
pub(in crate::math) fn log_sum(x: Value<'_>) -> Sum<'_> {
    let (k, f) = reduce(normalized(x.bitcast(U32)));
    let k = k.cast(F32);
    let s = fast_two_sum(k * LN2[0], f);
    fast_two_sum(s.hi, s.lo + (tail(f) + k * LN2[1]))
}

/// `k * scale[0] + log(1 + f) * c`, where `scale` is c ln 2 and `c` a constant, each as a leading
/// part of few bits and a remainder.
fn log_times<'b>(x: Value<'b>, scale: [f64; 2], c: [f64; 2]) -> Value<'b> {
    let (k, f) = reduce(normalized(x.bitcast(U32)));
    let k = k.cast(F32);
    let log = fast_two_sum(f, tail(f));
    let h = head(log.hi, 12);
    let low = ((log.hi - h) + log.lo) * c[0] + (log.hi * c[1] + k * scale[1]);
    let s = fast_two_sum(k * scale[0], h * c[0]);
    with_specials(x, s.hi + (s.lo + low))
}

/// Logarithm to base 2, within 1 ulp; exact for powers of two.
pub fn log2(x: Value<'_>) -> Value<'_> {
    log_times(x, [1.0, 0.0], [1.442_382_812_5, 0.000_312_228_396])
}

/// Logarithm to base 10, within 0.85 ulp.
pub fn log10(x: Value<'_>) -> Value<'_> {
    log_times(x, [0.301_025_390_625, 4.605_039_07e-6], [0.434_204_101_562_5, 9.038_033_75e-5])
}

/// `log(1 + x)`, within 1.05 ulp.
pub fn log1p(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    // 1 + x = u + c; near zero x itself is f, and nothing is lost.
    let near = x.gt(-0.292) & x.lt(0.414);
    let u = two_sum(x.like(1.0), x);
    let (k, f) = reduce(u.hi.bitcast(I32));
    let k = near.select(b.i32(0), k);
    let f = near.select(x, f);
    // c / u scaled: the derivative of the logarithm times c.
    let c = (u.lo * ((-k.max(-1).min(126) + 127) << 23).bitcast(F32)) * (1.0 - f * (1.0 - f * 0.8));
    let c = near.select(x.like(0.0), c);
    let k = k.cast(F32);
    let s = fast_two_sum(k * LN2[0], f);
    let y = s.hi + (s.lo + ((tail(f) + k * LN2[1]) + c));
    let result = x.gt(-1.0).select(y.bitcast(U32), b.u32(NAN));
    let result = x.eq(-1.0).select(b.u32(SIGN | INF), result);
    let result = (magnitude.lt(0x3300_0000) | bits.eq(INF)).select(bits, result);
    select_bits(magnitude.gt(INF), NAN, result)
}
