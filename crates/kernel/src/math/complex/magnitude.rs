//! Absolute value and angle.

use super::Complex;
use crate::builder::Value;
use crate::math;
use crate::math::special::{magnitude, product, two_product, two_sum};

/// The parts without their signs, the larger one first.
fn ordered<'b>(z: Complex<'b>) -> (Value<'b>, Value<'b>) {
    let (a, b) = (magnitude(z.re), magnitude(z.im));
    // By the bits, which have the order of the numbers.
    let bits = a.scalar().unsigned();
    let first = a.bitcast(bits).gt(b.bitcast(bits));
    (first.select(a, b), first.select(b, a))
}

/// `|z|`, nearly correctly rounded: the squares are added to twice the precision, scaled by a power
/// of two so that none overflows, and the root is corrected by its remainder. Infinite if a part is
/// infinite.
pub fn abs(z: Complex<'_>) -> Value<'_> {
    let (large, small) = ordered(z);
    let bits = large.scalar().unsigned();
    let double = large.scalar().bytes() == 8;
    let power = |exponent: i32| large.like(2f64.powi(exponent)).bitcast(bits);
    let (top, tiny) = if double { (1023, -900) } else { (127, -60) };
    let exponent = large.bitcast(bits) & large.like(f64::INFINITY).bitcast(bits);
    let exponent = exponent.max(power(tiny)).min(power(top - 1));
    let down = (power(top) - exponent).bitcast(large.scalar());
    let up = exponent.bitcast(large.scalar());
    let (x, y) = (large * down, small * down);
    let (p, q) = (two_product(x, x), two_product(y, y));
    let square = two_sum(p.hi, q.hi);
    let root = math::sqrt(square.hi);
    let back = two_product(root, root);
    let rest = ((square.hi - back.hi) - back.lo) + (square.lo + (p.lo + q.lo));
    let length = (root + math::div(rest, root + root)) * up;
    // Subnormal numbers, which an adapter may flush, are not scaled.
    let ratio = math::div(small, large);
    let near_zero = product(large, math::sqrt(1.0 + ratio * ratio));
    let length = large.bitcast(bits).lt(power(tiny)).select(near_zero, length);
    let length = large.is_zero().select(small, length);
    let length = z.is_nan().select(large.like(f64::NAN), length);
    z.is_inf().select(large.like(f64::INFINITY), length)
}

/// The angle of z, from -pi to pi.
pub fn angle(z: Complex<'_>) -> Value<'_> {
    math::atan2(z.im, z.re)
}

/// `z / |z|`; 0 for 0.
pub fn sgn(z: Complex<'_>) -> Complex<'_> {
    let length = abs(z);
    let unit = z.map(|part| math::div(part, length));
    Complex::select(z.is_zero(), z.like(0.0), unit)
}
