//! Logarithms.
//!
//! `x = 2^k m` with m between the square roots of 1/2 and 2, `f = m - 1`, and with
//! `s = f / (2 + f)` the series of `log((1 + s) / (1 - s))`, arranged as
//! `f - (f^2/2 - s (f^2/2 + R(s^2)))` so that its leading terms are exact or nearly so. After K. C.
//! Ng's e_log.c in fdlibm.

use super::exponential::LN_2;
use super::parts::*;
use crate::builder::Value;
use crate::types::ScalarType;

/// log2(e) as a pair.
const LOG2_E: (f64, f64) = (std::f64::consts::LOG2_E, 2.0355273740931033e-17);
/// log10(e) as a pair.
const LOG10_E: (f64, f64) = (std::f64::consts::LOG10_E, 1.098319650216765e-17);
/// log10(2) to 42 bits, so that products with exponents are exact, and the remainder.
const LOG10_2: (f64, f64) = (0.30102999566383914, 1.42050232272661e-13);

/// `(log((1 + s) / (1 - s)) - 2 s) / s^3` in `s^2`; minimax, relative to s 2^-65.
const SERIES: [f64; 8] = [
    0.6666666666666666,
    0.4000000000000624,
    0.2857142856908708,
    0.22222222646651243,
    0.18181775674497094,
    0.15387090472943413,
    0.13250122314832447,
    0.13251309415353987,
];

/// Bits of the square root of 1/2.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// `k` (i32) and `m` of `x = 2^k m`, for the bits of a positive finite `x`.
pub fn split(magnitude: Value<'_>) -> (Value<'_>, Value<'_>) {
    let b = magnitude.builder();
    let subnormal = magnitude.lt(MANTISSA + 1);
    let lifted = bits(float(magnitude | ONE) - 1.0);
    let shifted = subnormal.select(lifted, magnitude) + (ONE - ROOT_HALF);
    let k = (shifted >> 52).cast(ScalarType::I32) - subnormal.select(b.i32(1023 + 1022), 1023);
    (k, float((shifted & MANTISSA) + ROOT_HALF))
}

/// `s (f^2/2 + R)` for `f` and half its square.
fn tail<'b>(f: Value<'b>, half_square: Value<'b>) -> Value<'b> {
    let d = 2.0 + f;
    let r = reciprocal_estimate(d);
    let s = f * (r + r * (1.0 - d * r));
    let z = s * s;
    s * (half_square + z * polynomial(z, &SERIES))
}

/// `result` for a positive finite `x`, else the special values of logarithms.
fn or_special<'b>(x: Value<'b>, result: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let a = magnitude(x);
    let result = bits(x).eq(INFINITY).select(x, result);
    let result = a.eq(0).select(special(b, INFINITY | SIGN), result);
    let invalid = a.gt(INFINITY) | (is_negative(x) & a.ne(0));
    invalid.select(special(b, NAN), result)
}

/// See [`crate::math::log`].
pub fn log<'b>(x: Value<'b>) -> Value<'b> {
    let (k, m) = split(magnitude(x));
    let (k, f) = (k.cast(ScalarType::F64), m - 1.0);
    let half_square = 0.5 * (f * f);
    let s = fast_two_sum(k * LN_2.0, f);
    let rest = s.l + ((tail(f, half_square) + k * LN_2.1) - half_square);
    or_special(x, s.h + rest)
}

/// The logarithm of a positive normal number, and its rounding error; the relative error of the sum
/// is about 2^-57.
pub fn log_sum(x: Value<'_>) -> Pair<'_> {
    let (k, m) = split(magnitude(x));
    let (k, f) = (k.cast(ScalarType::F64), m - 1.0);
    let half_square = 0.5 * (f * f);
    let s = fast_two_sum(k * LN_2.0, f);
    fast_two_sum(s.h, s.l + ((tail(f, half_square) + k * LN_2.1) - half_square))
}

/// See [`crate::math::log1p`].
pub fn log1p<'b>(x: Value<'b>) -> Value<'b> {
    // 1 + x = u + c exactly; c / u is added at the end.
    let u = two_sum(x.like(1.0), x);
    let (k, m) = split(magnitude(u.h));
    let zero = k.eq(0);
    let f = zero.select(x, m - 1.0);
    let c = zero.select(x.like(0.0), u.l * power_of_two(-k.min(1000)) * rough_reciprocal(m));
    let k = k.cast(ScalarType::F64);
    let half_square = 0.5 * (f * f);
    let s = fast_two_sum(k * LN_2.0, f);
    let rest = s.l + (((tail(f, half_square) + c) + k * LN_2.1) - half_square);
    let y = or_special(x + 1.0, s.h + rest);
    is_below(x, -54).select(x, y)
}

/// `log(1 + f)` as a pair, relative error 2^-57.
fn log_pair(f: Value<'_>) -> Pair<'_> {
    let square = two_product(f, f);
    let half_square = square.h * 0.5;
    let s = fast_two_sum(f, -half_square);
    fast_two_sum(s.h, s.l + (tail(f, half_square) - 0.5 * square.l))
}

/// See [`crate::math::log2`].
pub fn log2<'b>(x: Value<'b>) -> Value<'b> {
    let (k, m) = split(magnitude(x));
    let y = log_pair(m - 1.0).times(Pair::constant(x.builder(), LOG2_E));
    let s = fast_two_sum(k.cast(ScalarType::F64), y.h);
    or_special(x, s.h + (s.l + y.l))
}

/// See [`crate::math::log10`].
pub fn log10<'b>(x: Value<'b>) -> Value<'b> {
    let (k, m) = split(magnitude(x));
    let k = k.cast(ScalarType::F64);
    let y = log_pair(m - 1.0).times(Pair::constant(x.builder(), LOG10_E));
    let s = fast_two_sum(k * LOG10_2.0, y.h);
    or_special(x, s.h + (s.l + (y.l + k * LOG10_2.1)))
}
