//! Exponentials, logarithms, powers and square roots.

use super::Complex;
use super::arithmetic::{add, mul, reciprocal, sub};
use super::magnitude::{abs, angle};
use crate::builder::Value;
use crate::math;
use crate::math::special::{flipped_by, magnitude, product, two_product, two_sum};
use std::f64::consts::{LN_2, LN_10};

/// The limits of a float type for exponentials as products of two factors: the argument from which
/// they are used, and the exponent of the second factor.
pub(super) struct Range {
    /// Up to this argument `e^x` is far from overflow.
    pub limit: f64,
    /// Above it `e^x` is `e^(x - shift) * e^shift`, whose factors are finite where the product with
    /// a sine may be finite.
    pub shift: f64,
}

pub(super) fn range(x: Value<'_>) -> Range {
    if x.scalar().bytes() == 8 { Range { limit: 700.0, shift: 512.0 } } else { Range { limit: 87.0, shift: 64.0 } }
}

/// `e^z`
pub fn exp(z: Complex<'_>) -> Complex<'_> {
    let Range { limit, shift } = range(z.re);
    let large = z.re.gt(limit) & z.re.is_finite();
    let e = math::exp(large.select(z.re - shift, z.re));
    let rest = large.select(z.re.like(shift.exp()), 1.0);
    let (sin, cos) = (math::sin(z.im), math::cos(z.im));
    let plain = Complex::new((e * cos) * rest, (e * sin) * rest);
    let on_axis = Complex::new(math::exp(z.re), z.im);
    let nowhere = !z.im.is_finite() & !z.re.is_finite() & !z.re.is_nan();
    let left = z.re.lt(0);
    let limits = Complex::new(left.select(z.re.like(0.0), z.re), left.select(z.re.like(0.0), z.re.like(f64::NAN)));
    let result = Complex::select(nowhere, limits, plain);
    Complex::select(z.im.is_zero(), on_axis, result)
}

/// `2^z`
pub fn exp2(z: Complex<'_>) -> Complex<'_> {
    exp(z.times(z.re.like(LN_2)))
}

/// `e^z - 1`, without cancellation near 0.
pub fn expm1(z: Complex<'_>) -> Complex<'_> {
    let half = math::sin(z.im * 0.5);
    Complex::new(math::expm1(z.re) * math::cos(z.im) - 2.0 * half * half, math::exp(z.re) * math::sin(z.im))
}

/// z times a power of two such that its square neither overflows nor underflows, and the power's
/// exponent.
fn scaled(z: Complex<'_>) -> (Complex<'_>, Value<'_>) {
    let largest = magnitude(z.re).max(magnitude(z.im));
    let (high, low) =
        if z.re.scalar().bytes() == 8 { (2f64.powi(1000), 2f64.powi(-900)) } else { (2f64.powi(100), 2f64.powi(-60)) };
    let (big, tiny) = (largest.gt(high), !largest.ge(low) & !z.is_nan());
    let down = z.times(z.re.like(2f64.powi(-30)));
    let up = z.map(|x| product(x, x.like(2f64.powi(60))));
    let exponent = big.select(z.re.like(30.0), tiny.select(z.re.like(-60.0), 0.0));
    (Complex::select(big, down, Complex::select(tiny, up, z)), exponent)
}

/// The natural logarithm of `|z|`, from `|z|^2 - 1` if `|z|` is near 1.
fn log_abs(z: Complex<'_>) -> Value<'_> {
    let (w, exponent) = scaled(z);
    let far = math::log(abs(w)) + exponent * LN_2;
    let (x, y) = (magnitude(z.re), magnitude(z.im));
    let (x, y) = (x.max(y), x.min(y));
    let (p, q) = (two_product(x, x), two_product(y, y));
    let s = two_sum(p.hi, x.like(-1.0));
    let t = two_sum(s.hi, q.hi);
    let excess = t.hi + ((t.lo + s.lo) + (p.lo + q.lo));
    let near = excess.gt(-0.5) & excess.lt(2.0) & !z.is_nan();
    near.select(math::log1p(excess) * 0.5, far)
}

/// The natural logarithm, with an imaginary part from -pi to pi.
pub fn log(z: Complex<'_>) -> Complex<'_> {
    Complex::new(log_abs(z), angle(z))
}

/// Logarithm to base 2.
pub fn log2(z: Complex<'_>) -> Complex<'_> {
    log(z).map(|x| math::div(x, x.like(LN_2)))
}

/// Logarithm to base 10.
pub fn log10(z: Complex<'_>) -> Complex<'_> {
    log(z).map(|x| math::div(x, x.like(LN_10)))
}

/// `log(1 + z)`, without cancellation near 0.
pub fn log1p(z: Complex<'_>) -> Complex<'_> {
    let shifted = Complex::new(z.re + 1.0, z.im);
    // |1 + z|^2 - 1
    let (p, q) = (two_product(z.re, z.re), two_product(z.im, z.im));
    let s = two_sum(2.0 * z.re, p.hi);
    let t = two_sum(s.hi, q.hi);
    let excess = t.hi + ((t.lo + s.lo) + (p.lo + q.lo));
    let near = abs(z).lt(0.5);
    let re = near.select(math::log1p(excess) * 0.5, log_abs(shifted));
    // The square is negligible compared with 2 Re z.
    let re = (excess.is_zero() & near).select(z.re, re);
    let re = z.is_nan().select(z.re.like(f64::NAN), re);
    Complex::new(re, angle(shifted))
}

/// The root whose real part is not negative.
pub fn sqrt(z: Complex<'_>) -> Complex<'_> {
    let (w, exponent) = scaled(z);
    let large = math::sqrt((magnitude(w.re) + abs(w)) * 0.5);
    let small = math::div(w.im, large + large);
    let back = exponent.gt(0).select(w.re.like(2f64.powi(15)), exponent.lt(0).select(w.re.like(2f64.powi(-30)), 1.0));
    let (large, small) = (large * back, small * back);
    let left = z.re.lt(0);
    let turned = Complex::new(magnitude(small), flipped_by(large, z.im));
    let result = Complex::select(left, turned, Complex::new(large, small));
    let result = Complex::select(z.is_zero(), Complex::new(z.re.like(0.0), z.im), result);
    // At infinity.
    let infinity = z.re.like(f64::INFINITY);
    let zero = flipped_by(z.re.like(0.0), z.im);
    let right_end = Complex::new(infinity, z.im.is_nan().select(z.im, zero));
    let left_end = Complex::new(z.im.is_nan().select(z.im, z.re.like(0.0)), flipped_by(infinity, z.im));
    let result = Complex::select(z.re.is_inf(), Complex::select(left, left_end, right_end), result);
    Complex::select(z.im.is_inf(), Complex::new(infinity, z.im), result)
}

/// `1 / sqrt(z)`
pub fn rsqrt(z: Complex<'_>) -> Complex<'_> {
    reciprocal(sqrt(z))
}

/// `1 / (1 + e^-z)`
pub fn sigmoid(z: Complex<'_>) -> Complex<'_> {
    reciprocal(add(z.like(1.0), exp(z.negated())))
}

/// `z^w = e^(w log z)`
pub fn pow<'b>(z: Complex<'b>, w: Complex<'b>) -> Complex<'b> {
    exp(mul(w, log(z)))
}

/// `log(e^z + e^w)`, from the one with the larger real part.
pub fn logaddexp<'b>(z: Complex<'b>, w: Complex<'b>) -> Complex<'b> {
    let first = z.re.ge(w.re);
    let (large, small) = (Complex::select(first, z, w), Complex::select(first, w, z));
    let sum = add(large, log1p(exp(sub(small, large))));
    // Both e^z and e^w are 0.
    Complex::select(large.re.is_inf() & large.re.lt(0), large, sum)
}
