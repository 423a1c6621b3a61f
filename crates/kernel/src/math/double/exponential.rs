//! The exponential function and related functions.
//!
//! `x = k ln 2 + r` with `|r| <= ln 2 / 2` (Cody and Waite's reduction), then polynomials for the
//! even and the odd part of `e^r`, whose leading terms stay separate so that they add without
//! error.

use super::parts::*;
use crate::builder::{Operand, Value};
use crate::types::ScalarType;
use std::f64::consts::LOG2_E;

/// ln 2 to 42 bits, so that products with exponents are exact, and the remainder.
pub const LN_2: (f64, f64) = (0.6931471805598903, 5.497923018708371e-14);
/// ln 2 to 53 bits, and the remainder.
const LN_2_PAIR: (f64, f64) = (std::f64::consts::LN_2, 2.3190468138462996e-17);

/// `(sinh(r) - r) / r^3` in `r^2`; minimax, relative to r 2^-62.
const SINH: [f64; 5] =
    [0.16666666666666685, 0.008333333333316761, 0.00019841269897018593, 2.7557234266225394e-06, 2.5112232475449104e-08];
/// `(cosh(r) - 1 - r^2 / 2) / r^4` in `r^2`; minimax, 2^-70.
const COSH: [f64; 5] = [
    0.041666666666666685,
    0.0013888888888873463,
    2.4801587348790957e-05,
    2.7557252208333784e-07,
    2.0921639936761517e-09,
];

/// `e^r`: `cosh(r) = 1 + even`, `sinh(r) = r + odd`, where `r` is the leading double of the
/// argument.
pub struct Core<'b> {
    pub r: Value<'b>,
    pub odd: Value<'b>,
    pub even: Value<'b>,
}

/// The core for `|r| <= 0.35`.
pub fn core(r: Pair<'_>) -> Core<'_> {
    let z = r.h * r.h;
    let even = 0.5 * z + (z * z) * polynomial(z, &COSH);
    let odd = (r.h * z) * polynomial(z, &SINH) + (r.l + r.l * even);
    Core { r: r.h, odd, even: even + r.l * r.h }
}

impl<'b> Core<'b> {
    /// `e^r` as a sum.
    pub fn exp(&self) -> Pair<'b> {
        let s = fast_two_sum(self.r.like(1.0), self.r);
        Pair::new(s.h, s.l + (self.even + self.odd))
    }
}

/// `k` (i32) and `r` of `x = k ln 2 + r`, for `|x|` up to 1400.
pub fn reduce(x: Pair<'_>) -> (Value<'_>, Pair<'_>) {
    let k = (x.h * LOG2_E).round();
    let (high, low) = (x.h - k * LN_2.0, k * LN_2.1 - x.l);
    let h = high - low;
    (k.cast(ScalarType::I32), Pair::new(h, (high - h) - low))
}

/// See [`crate::math::exp`].
pub fn exp<'b>(x: Value<'b>) -> Value<'b> {
    exp_scaled(x, 0)
}

/// `e^x * 2^n` for an n of 0 to 640; no bits are lost where `e^x` alone would be subnormal.
pub fn exp_scaled(x: Value<'_>, n: u32) -> Value<'_> {
    let clamped = x.max(-746.0 - 0.5 * f64::from(n)).min(710.0);
    x.is_nan().select(x, exp_of(Pair::exact(clamped), n.value(x.builder(), ScalarType::I32)))
}

/// `e^x * 2^n` for `|x.h|` up to 1400.
pub fn exp_of<'b>(x: Pair<'b>, n: Value<'b>) -> Value<'b> {
    let (k, r) = reduce(x);
    scale(core(r).exp().value(), k + n)
}

/// `e^x * factor` of sums, for a factor of 2^-20 to 1; NaN becomes zero.
pub fn exp_times<'b>(x: (Value<'b>, Value<'b>), factor: (Value<'b>, Value<'b>)) -> Value<'b> {
    let h = x.0.max(-770.0).min(740.0);
    let (k, r) = reduce(Pair::new(h, h.eq(x.0).select(x.1, 0.0)));
    let y = core(r).exp().normalized().times(Pair::new(factor.0, factor.1));
    scale(y.value(), k)
}

/// See [`crate::math::exp2`].
pub fn exp2<'b>(x: Value<'b>) -> Value<'b> {
    let clamped = x.max(-1080.0).min(1025.0);
    let k = clamped.round();
    let r = clamped - k;
    let p = two_product(r, x.like(LN_2_PAIR.0));
    let r = Pair::new(p.h, p.l + r * LN_2_PAIR.1);
    x.is_nan().select(x, scale(core(r).exp().value(), k.cast(ScalarType::I32)))
}

/// See [`crate::math::expm1`].
pub fn expm1<'b>(x: Value<'b>) -> Value<'b> {
    let (k, r) = reduce(Pair::exact(x.max(-40.0).min(710.0)));
    let core = core(r);
    // 2^k ((1 - 2^-k) + (e^r - 1)); above 2^100 the 1 is negligible.
    let one = two_sum(x.like(1.0), -power_of_two(-k.min(100)));
    let s = two_sum(one.h, core.r);
    let y = scale(s.h + (s.l + one.l + (core.even + core.odd)), k);
    // Keeps the sign of zero, NaN, and subnormal numbers.
    (x.is_nan() | is_below(x, -54)).select(x, y)
}

/// See [`crate::math::sigmoid`].
pub fn sigmoid<'b>(x: Value<'b>) -> Value<'b> {
    // With e = e^-|x|: 1 / (1 + e) right of zero, e / (1 + e) left of it.
    let (k, r) = reduce(Pair::exact(-x.abs().min(746.0)));
    let e = core(r).exp().normalized();
    let part = e.times_power(power_of_two(k.max(-100)));
    let sum = fast_two_sum(x.like(1.0), part.h);
    let denominator = fast_two_sum(sum.h, sum.l + part.l);
    let negative = is_negative(x);
    let numerator = Pair::select(negative, e, Pair::exact(x.like(1.0)));
    let y = scale(quotient(numerator, denominator).value(), negative.select(k, 0));
    x.is_nan().select(x, y)
}
