//! Sums, products and quotients.

use super::Complex;
use crate::builder::Value;
use crate::math;
use crate::math::special::magnitude;

/// `a + b`
pub fn add<'b>(a: Complex<'b>, b: Complex<'b>) -> Complex<'b> {
    Complex::new(a.re + b.re, a.im + b.im)
}

/// `a - b`
pub fn sub<'b>(a: Complex<'b>, b: Complex<'b>) -> Complex<'b> {
    Complex::new(a.re - b.re, a.im - b.im)
}

/// `a b` by the four products of the parts: an infinity times a number that is not real has a NaN
/// part, as on the CPU.
pub fn mul<'b>(a: Complex<'b>, b: Complex<'b>) -> Complex<'b> {
    Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

/// 1/4 if a part is near the largest number, else 1.
fn quartering<'b>(z: Complex<'b>) -> Value<'b> {
    let limit = if z.re.scalar().bytes() == 8 { f64::MAX / 8.0 } else { f64::from(f32::MAX) / 8.0 };
    (magnitude(z.re).gt(limit) | magnitude(z.im).gt(limit)).select(z.re.like(0.25), 1.0)
}

/// `a / b` (R. L. Smith, "Algorithm 116", 1962): without the square of the divisor, which may
/// overflow. For a zero divisor each part is divided by +0.
pub fn div<'b>(a: Complex<'b>, b: Complex<'b>) -> Complex<'b> {
    let (of_a, of_b) = (quartering(a), quartering(b));
    let (x, y) = (a.times(of_a), b.times(of_b));
    let wide = magnitude(y.re).ge(magnitude(y.im));
    let (large, small) = (wide.select(y.re, y.im), wide.select(y.im, y.re));
    let ratio = math::div(small, large);
    let divisor = large + small * ratio;
    // If the real part of y is the smaller one, x / y = (-i x) / (-i y).
    let turned = Complex::select(wide, x, Complex::new(x.im, -x.re));
    let ratio = wide.select(ratio, -ratio);
    let quotient = Complex::new(turned.re + turned.im * ratio, turned.im - turned.re * ratio);
    let back = of_a.eq(of_b).select(a.re.like(1.0), of_b.lt(of_a).select(a.re.like(0.25), 4.0));
    let quotient = quotient.map(|part| math::div(part, divisor) * back);
    let by_zero = a.map(|part| math::div(part, magnitude(b.re)));
    Complex::select(b.is_zero(), by_zero, quotient)
}

/// `1 / z`
pub fn reciprocal(z: Complex<'_>) -> Complex<'_> {
    let wide = magnitude(z.re).ge(magnitude(z.im));
    let (large, small) = (wide.select(z.re, z.im), wide.select(z.im, z.re));
    let ratio = math::div(small, large);
    let divisor = large + small * ratio;
    let one = z.re.like(1.0);
    // 0 - ratio, which drivers would replace by a negation.
    let below = ratio.is_zero().select(z.re.like(0.0), -ratio);
    let re = math::div(wide.select(one, ratio), divisor);
    let im = math::div(wide.select(below, -one), divisor);
    let by_zero = Complex::new(z.re.like(f64::INFINITY), z.re.like(f64::NAN));
    Complex::select(z.is_zero(), by_zero, Complex::new(re, im))
}
