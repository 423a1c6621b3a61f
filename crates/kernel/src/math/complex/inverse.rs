//! Inverse trigonometric and hyperbolic functions, after T. E. Hull, T. F. Fairgrieve, P. T. P.
//! Tang, "Implementing the complex arcsine and arccosine functions using exception handling"
//! (1997).

use super::Complex;
use super::magnitude::abs;
use crate::builder::Value;
use crate::math;
use crate::math::special::{flipped_by, magnitude};
use std::f64::consts::{FRAC_PI_2, LN_2, PI};

/// Above it asin's real part is computed by an arc tangent, because the arc sine would lose digits.
const CROSSOVER: f64 = 0.6417;

/// The inverse sine and cosine of `x + iy` in the first quadrant.
struct Quadrant<'b> {
    /// The real part of the inverse sine.
    sine: Value<'b>,
    /// The real part of the inverse cosine.
    cosine: Value<'b>,
    /// The imaginary part of both, up to the sign.
    im: Value<'b>,
}

/// Thresholds of a float type.
struct Sizes {
    /// `z^3` is negligible compared with z.
    small: f64,
    /// 1 is negligible compared with the square of z.
    large: f64,
    epsilon: f64,
}

fn sizes(x: Value<'_>) -> Sizes {
    if x.scalar().bytes() == 8 {
        Sizes { small: 2f64.powi(-28), large: 2f64.powi(30), epsilon: f64::EPSILON }
    } else {
        Sizes { small: 2f64.powi(-13), large: 2f64.powi(14), epsilon: f64::from(f32::EPSILON) }
    }
}

fn quadrant(z: Complex<'_>) -> Quadrant<'_> {
    let (x, y) = (magnitude(z.re), magnitude(z.im));
    let Sizes { small, large, epsilon } = sizes(x);
    let r = abs(Complex::new(x + 1.0, y));
    let s = abs(Complex::new(x - 1.0, y));
    let a = (r + s) * 0.5;
    let b = math::div(x, a);
    let left = x.lt(1.0);
    let square = y * y;
    // a - x, in two ways without cancellation.
    let first = math::div(square, r + (x + 1.0));
    let inner = (a + x) * 0.5 * (first + (s + (1.0 - x)));
    let outer = (a + x) * 0.5 * (math::div(x.like(1.0), r + (x + 1.0)) + math::div(x.like(1.0), s + (x - 1.0)));
    let root = x.le(1.0).select(math::sqrt(inner), y * math::sqrt(outer));
    let steep = b.gt(CROSSOVER);
    let sine = steep.select(math::atan2(x, root), math::asin(b));
    let cosine = steep.select(math::atan2(root, x), math::acos(b));
    let second = left.select(math::div(square, s + (1.0 - x)), s + (x - 1.0));
    let excess = (first + second) * 0.5;
    let near = math::log1p(excess + math::sqrt(excess * (a + 1.0)));
    let im = a.le(1.5).select(near, math::log(a + math::sqrt(a * a - 1.0)));
    // On the real axis, or so near to it that y^2 is negligible.
    let flat = y.lt(magnitude(x - 1.0) * epsilon) & x.lt(large);
    let root = math::sqrt((1.0 - x) * (1.0 + x));
    let beyond = math::log1p((x - 1.0) + math::sqrt((x - 1.0) * (x + 1.0)));
    let im = flat.select(left.select(math::div(y, root), beyond), im);
    // Near 0, and far away.
    let tiny = x.lt(small) & y.lt(small);
    let far = x.gt(large) | y.gt(large);
    let sine = tiny.select(x, far.select(math::atan2(x, y), sine));
    let cosine = tiny.select(FRAC_PI_2 - x, far.select(math::atan2(y, x), cosine));
    let distance = super::exponential::log(Complex::new(x, y)).re + LN_2;
    Quadrant { sine, cosine, im: tiny.select(y, far.select(distance, im)) }
}

/// Inverse sine.
pub fn asin(z: Complex<'_>) -> Complex<'_> {
    let q = quadrant(z);
    let re = z.re.is_zero().select(z.re, flipped_by(q.sine, z.re));
    Complex::new(re, flipped_by(q.im, z.im))
}

/// Inverse cosine.
pub fn acos(z: Complex<'_>) -> Complex<'_> {
    let q = quadrant(z);
    let re = z.re.lt(0).select(PI - q.cosine, q.cosine);
    let re = z.re.is_zero().select(z.re.like(FRAC_PI_2), re);
    Complex::new(re, flipped_by(q.im, -z.im))
}

/// Inverse hyperbolic sine.
pub fn asinh(z: Complex<'_>) -> Complex<'_> {
    asin(z.times_i()).times_minus_i()
}

/// Inverse hyperbolic cosine, with a real part that is not negative.
pub fn acosh(z: Complex<'_>) -> Complex<'_> {
    let w = acos(z);
    Complex::new(magnitude(w.im), flipped_by(magnitude(w.re), z.im))
}

/// Inverse hyperbolic tangent.
pub fn atanh(z: Complex<'_>) -> Complex<'_> {
    let (x, y) = (magnitude(z.re), magnitude(z.im));
    let Sizes { small, large, .. } = sizes(x);
    let gap = 1.0 - x;
    let re = math::log1p(math::div(4.0 * x, gap * gap + y * y)) * 0.25;
    let im = math::atan2(2.0 * y, gap * (1.0 + x) - y * y) * 0.5;
    // So near the pole that y^2 is negligible.
    let pole = x.eq(1.0) & y.lt(small);
    let re = pole.select((LN_2 - math::log(y)) * 0.5, re);
    let tiny = x.lt(small) & y.lt(small);
    let far = x.gt(large) | y.gt(large);
    // The parts of 1 / z.
    let length = abs(z);
    let [away, below] = [x, y].map(|part| math::div(math::div(part, length), length));
    let infinite = length.is_inf();
    let re = tiny.select(x, far.select(infinite.select(x.like(0.0), away), re));
    let im = tiny.select(y, far.select(infinite.select(x.like(FRAC_PI_2), FRAC_PI_2 - below), im));
    let im = (x.is_nan() & y.is_finite()).select(x, y.is_nan().select(y, im));
    Complex::new(z.re.is_zero().select(z.re, flipped_by(re, z.re)), flipped_by(im, z.im))
}

/// Inverse tangent.
pub fn atan(z: Complex<'_>) -> Complex<'_> {
    atanh(z.times_i()).times_minus_i()
}
