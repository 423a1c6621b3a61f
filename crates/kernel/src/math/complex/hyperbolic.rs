//! Hyperbolic functions, and trigonometric functions, which are hyperbolic functions of `i z`.

use super::Complex;
use super::exponential::{Range, range};
use crate::builder::Value;
use crate::math;
use crate::math::special::{flipped_by, magnitude};

/// sinh and cosh of a real number, each times `e^-shift` if it would overflow, and `e^shift` for
/// the final product.
fn sinh_cosh(x: Value<'_>) -> (Value<'_>, Value<'_>, Value<'_>) {
    let Range { limit, shift } = range(x);
    let size = magnitude(x);
    let large = size.gt(limit) & x.is_finite();
    let half = math::exp(size - shift) * 0.5;
    (
        large.select(flipped_by(half, x), math::sinh(x)),
        large.select(half, math::cosh(x)),
        large.select(x.like(shift.exp()), 1.0),
    )
}

/// `a b`; 0 with the product of the signs if a factor is 0, also if the other one is infinite.
fn vanishing<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let zero = flipped_by(flipped_by(a.like(0.0), a), b);
    (a.is_zero() | b.is_zero()).select(zero, a * b)
}

/// Hyperbolic sine.
pub fn sinh(z: Complex<'_>) -> Complex<'_> {
    let (sinh, cosh, rest) = sinh_cosh(z.re);
    let re = vanishing(sinh, math::cos(z.im)) * rest;
    let im = vanishing(cosh, math::sin(z.im)) * rest;
    let lost = z.re.is_inf() & !z.im.is_finite();
    let on_axis = z.re.is_zero() & !z.im.is_finite();
    Complex::new(lost.select(z.re, on_axis.select(z.re, re)), z.im.is_zero().select(z.im, im))
}

/// Hyperbolic cosine.
pub fn cosh(z: Complex<'_>) -> Complex<'_> {
    let (sinh, cosh, rest) = sinh_cosh(z.re);
    let re = (cosh * math::cos(z.im)) * rest;
    let im = vanishing(sinh, math::sin(z.im)) * rest;
    let lost = z.re.is_inf() & !z.im.is_finite();
    Complex::new(lost.select(magnitude(z.re), z.im.is_zero().select(math::cosh(z.re), re)), im)
}

/// Hyperbolic tangent: `(sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)`.
pub fn tanh(z: Complex<'_>) -> Complex<'_> {
    let limit = if z.re.scalar().bytes() == 8 { 22.0 } else { 11.0 };
    let size = magnitude(z.re);
    let (sin, cos) = (math::sin(z.im), math::cos(z.im));
    let near = size.min(limit);
    let (sinh, cosh) = (math::sinh(flipped_by(near, z.re)), math::cosh(near));
    let divisor = sinh * sinh + cos * cos;
    let middle = Complex::new(math::div(sinh * cosh, divisor), math::div(sin * cos, divisor));
    let far = Complex::new(flipped_by(z.re.like(1.0), z.re), vanishing(4.0 * sin * cos, math::exp(-2.0 * size)));
    let result = Complex::select(size.gt(limit), far, middle);
    // At infinity the angle does not matter, even if it is NaN.
    let end = flipped_by(z.re.like(0.0), z.im.is_finite().select(sin * cos, z.im));
    let im = z.re.is_inf().select(end, result.im);
    // Elsewhere the result is NaN if the angle is NaN or infinite.
    let lost = z.re.is_nan() | (z.re.is_finite() & !z.im.is_finite());
    let nan = z.re.like(f64::NAN);
    let re = z.re.is_zero().select(z.re, lost.select(nan, result.re));
    Complex::new(re, z.im.is_zero().select(z.im, lost.select(nan, im)))
}

/// Sine.
pub fn sin(z: Complex<'_>) -> Complex<'_> {
    sinh(z.times_i()).times_minus_i()
}

/// Cosine.
pub fn cos(z: Complex<'_>) -> Complex<'_> {
    cosh(z.times_i())
}

/// Tangent.
pub fn tan(z: Complex<'_>) -> Complex<'_> {
    tanh(z.times_i()).times_minus_i()
}
