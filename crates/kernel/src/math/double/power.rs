//! Powers.
//!
//! `x^y = e^(y log x)` with the logarithm as a pair whose relative error is 2^-68, so that its
//! error is small after multiplication by a product below 745. The logarithm is the series of
//! logarithm.rs with its first three terms as pairs.

use super::exponential::{LN_2, exp_of};
use super::logarithm;
use super::parts::*;
use crate::builder::Value;
use crate::types::ScalarType;

/// 2/3 and 2/5 as pairs.
const THIRD: (f64, f64) = (2.0 / 3.0, 3.700743415417188e-17);
const FIFTH: (f64, f64) = (0.4, -2.2204460492503132e-17);
/// `(log((1 + s) / (1 - s)) - 2 s - 2 s^3 / 3 - 2 s^5 / 5) / s^7` in `s^2`; minimax, relative to s
/// 2^-71.
const SERIES: [f64; 7] = [
    0.2857142857143316,
    0.2222222222001209,
    0.1818181860549664,
    0.15384572894278792,
    0.13335763328779565,
    0.11685036911909198,
    0.11911019004725636,
];

/// `log(x)` for the bits of a positive finite x.
fn log(magnitude: Value<'_>) -> Pair<'_> {
    let b = magnitude.builder();
    let (k, m) = logarithm::split(magnitude);
    let k = k.cast(ScalarType::F64);
    let s = quotient(Pair::exact(m - 1.0), two_sum(m, m.like(1.0)));
    let z = s.times(s);
    let fifth = Pair::constant(b, FIFTH).plus(z.h * polynomial(z.h, &SERIES));
    let third = Pair::constant(b, THIRD).plus_pair(z.times(fifth));
    let log = s.times_power(2.0).plus_pair(s.times(z).times(third));
    let sum = fast_two_sum(k * LN_2.0, log.h);
    fast_two_sum(sum.h, sum.l + (log.l + k * LN_2.1))
}

/// See [`crate::math::pow`].
pub fn pow<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    pow_scaled(x, y, x.builder().i32(0))
}

/// `x^y * 2^scale` for a scale (i32) of 0 to 640; no bits are lost where `x^y` alone would be
/// subnormal. Where `x^y` is 1 because a base or an exponent is, the scale must be 0.
pub fn pow_scaled<'b>(x: Value<'b>, y: Value<'b>, scale: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ax, ay) = (magnitude(x), magnitude(y));
    let log = log(ax);
    // The logarithm of a number other than 1 is at least 2^-53: beyond 2^64 the power is 0 or
    // infinite anyway.
    let exponent = y.max(-(2f64.powi(64))).min(2f64.powi(64));
    let p = two_product(exponent, log.h);
    let p = fast_two_sum(p.h, p.l + exponent * log.l);
    let h = p.h.max(-1400.0).min(720.0);
    let power = exp_of(Pair::new(h, h.eq(p.h).select(p.l, 0.0)), scale);

    // Whole numbers by bits: a comparison may flush a subnormal.
    let half = y * 0.5;
    let whole = bits(y.trunc()).eq(bits(y));
    let odd = whole & bits(half.trunc()).ne(bits(half));
    let (x_zero, x_inf) = (ax.eq(0), ax.eq(INFINITY));
    let to_zero = x_zero.ne(is_negative(y));
    let extreme = to_zero.select(x.like(0.0), special(b, INFINITY));
    let power = (x_zero | x_inf).select(extreme, power);
    let negative = is_negative(x);
    let power = flip(power, (negative & odd).select(b.int(ScalarType::U64, SIGN), 0));
    let nan = ax.gt(INFINITY) | ay.gt(INFINITY) | (negative & !whole & !(x_zero | x_inf));
    let power = nan.select(special(b, NAN), power);
    (bits(x).eq(ONE) | ay.eq(0)).select(x.like(1.0), power)
}
