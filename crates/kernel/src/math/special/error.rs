//! Relatives of the error function: its scaled complement, and inverses.
//!
//! The scaled complement after M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1
//! + 2x) exp(x^2) erfc x" (1981). The inverse in `w = -log(1 - x^2)` after M. Giles, "Approximating
//!   the erfinv function" (2011), with other intervals, and for arguments up to the last quantiles
//!   of the normal distribution.

use super::polynomial::piecewise;
use super::sum::{Sum, exp_times, flipped_by, magnitude, product, two_product};
use super::tables::*;
use crate::builder::Value;
use crate::math;

/// `e^(x^2) erfc(x)`
pub fn erfcx(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let a = x.abs();
    let u = (a - ERFCX_K) / (a + ERFCX_K);
    let positive = x.is_inf().select(x.like(0.0), (0.5 * ERFCX.at(u)) / (0.5 + a));
    let result = b.var(positive);
    b.if_(x.lt(0), || {
        // 2 e^(x^2) - erfcx(|x|); beyond that it is infinite.
        let c = a.min(30.0);
        let exponential = exp_times(two_product(c, c), Sum::exact(x.like(1.0)));
        result.set(2.0 * exponential - positive);
    });
    x.is_nan().select(x, result.get())
}

/// The constant that maps the argument of `erfcx` to -1 to 1.
const ERFCX_K: f64 = 3.75;

/// The y with `erf(y) = x`, given the magnitude of x, and `w = -log((1 - x) (1 + x))`, which is
/// more precise for x near 1.
fn inverse<'b>(x: Value<'b>, w: Value<'b>) -> Value<'b> {
    let far = w.gt(6.0);
    let root = math::sqrt(far.select(w, x.like(6.0)));
    let v = far.select(math::reciprocal(root), w);
    let pieces = [(w.gt(2.0), &ERFINV_2), (far, &ERFINV_3), (w.gt(17.0), &ERFINV_4)];
    let p = piecewise(v, &ERFINV_1, &pieces);
    far.select(root * p.hi, product(x, p.hi))
}

/// The y with `erf(y) = x`; infinite at -1 and 1, NaN beyond.
pub fn erfinv(x: Value<'_>) -> Value<'_> {
    let a = magnitude(x);
    let inside = a.lt(1.0);
    let c = inside.select(a, x.like(0.5));
    let y = inverse(c, -math::log((1.0 - c) * (1.0 + c)));
    let y = a.eq(1.0).select(x.like(f64::INFINITY), y);
    let y = a.le(1.0).select(y, x.like(f64::NAN));
    let y = flipped_by(y, x);
    // Keeps the sign of zero.
    x.is_zero().select(x, x.is_nan().select(x, y))
}

/// Quantile of the normal distribution; infinite at 0 and 1, NaN outside.
pub fn ndtri(p: Value<'_>) -> Value<'_> {
    let inside = p.is_above_zero() & p.lt(1.0);
    let c = inside.select(p, p.like(0.25));
    // x = 2 p - 1, and 1 - x^2 = 4 p (1 - p)
    let tiny = c.lt(1e-20);
    let w = -math::log(tiny.select(c, 4.0 * (1.0 - c) * c)) - tiny.select(c.like(4f64.ln()), 0.0);
    let y = inverse(((c - 0.5) * 2.0).abs(), w) * std::f64::consts::SQRT_2;
    let y = c.lt(0.5).select(-y, y);
    let zero = p.is_zero();
    let y = zero.select(p.like(f64::NEG_INFINITY), p.eq(1.0).select(p.like(f64::INFINITY), y));
    (inside | zero | p.eq(1.0)).select(y, p.like(f64::NAN))
}
