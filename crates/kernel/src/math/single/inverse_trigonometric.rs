//! Inverse sine, cosine and tangent. Polynomials are minimax (Remez); square roots and quotients
//! are computed with their rounding errors.

use super::division::{assemble, quotient, root};
use super::exact::{Sum, fast_two_sum, polynomial, two_product, two_square, two_sum};
use super::exponential::clamp;
use super::subnormal::normalized;
use super::trigonometric::HALF_PI;
use super::{INF, MAGNITUDE, NAN, SIGN, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// `(asin(x) - x) / x^3` as a polynomial in x^2 for |x| up to 1/2, within 2^-31 of `asin(x) / x`.
const ASIN: [f64; 6] =
    [0.166_666_597, 0.075_005_210_9, 0.044_513_635_3, 0.031_836_122_3, 0.014_328_501_2, 0.037_674_836_8];
/// `(atan(x) - x) / x^3` as a polynomial in x^2 for |x| up to 1, within 2^-28 of `atan(x) / x`.
const ATAN: [f64; 9] = [
    -0.333_333_015,
    0.199_986_264,
    -0.142_650_917,
    0.109_566_569,
    -0.084_164_552_4,
    0.058_177_907,
    -0.031_394_224_6,
    0.011_028_803,
    -0.001_818_672_4,
];

/// For |x| up to 1: asin(s) with s = |x| up to 1/2, or s = sqrt((1 - |x|) / 2) above, where
/// `asin |x| = pi/2 - 2 asin(s)`.
fn arc_sine<'b>(a: Value<'b>, large: Value<'b>) -> Sum<'b> {
    // Exact for |x| of 1/2 and more. The root of 0 is not needed.
    let half = clamp((1.0 - a) * 0.5, 1e-30, 1.0);
    let r = root(half.bitcast(I32));
    // The root's error is in ulp of the root.
    let unit = ((r.root.bitcast(I32) & 0x7f80_0000) - (23 << 23)).bitcast(F32);
    let s = large.select(r.root, a);
    let low = large.select(r.rest * unit, 0.0);
    let z = large.select(half, a * a);
    Sum { hi: s, lo: s * z * polynomial(z, &ASIN) + low }
}

/// Inverse sine, within 0.7 ulp.
pub fn asin(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let a = magnitude.bitcast(F32);
    let large = a.gt(0.5);
    let y = arc_sine(clamp(a, 0.0, 1.0), large);
    // pi/2 - 2 y
    let s = fast_two_sum(x.like(HALF_PI[0]), y.hi * -2.0);
    let above = s.hi + (s.lo + (HALF_PI[1] - 2.0 * y.lo));
    let result = large.select(above, y.hi + y.lo).bitcast(U32);
    let result = magnitude.lt(0x3980_0000).select(magnitude, result) | (bits & SIGN);
    select_bits(magnitude.gt(0x3f80_0000), NAN, result)
}

/// Inverse cosine, within 0.7 ulp.
pub fn acos(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let negative = bits.ge(SIGN);
    let a = magnitude.bitcast(F32);
    let large = a.gt(0.5);
    let y = arc_sine(clamp(a, 0.0, 1.0), large);
    // 2 y, pi - 2 y, or pi/2 -+ y: a multiple of pi/2 plus a multiple of y.
    let zero = x.like(0.0);
    let turns = large.select(negative.select(x.like(2.0), 0.0), 1.0);
    let factor = large.select(x.like(2.0), 1.0);
    let factor = (negative ^ !large).select(-factor, factor);
    let factor = (!large & negative).select(x.like(1.0), factor);
    let s = fast_two_sum(turns * HALF_PI[0], factor * y.hi);
    let result = s.hi + (s.lo + (turns * HALF_PI[1] + factor * y.lo));
    let result = magnitude.eq(0x3f80_0000).select(negative.select(x.like(std::f64::consts::PI), zero), result);
    select_bits(magnitude.gt(0x3f80_0000), NAN, result.bitcast(U32))
}

/// The angle of (x, y) in the first quadrant, given `t = min / max` with its error, without the
/// half turns that are added: `turns * pi/2 + sign * atan(t)`.
fn arc_tangent<'b>(t: Sum<'b>, turns: Value<'b>, negative: Value<'b>) -> Value<'b> {
    // atan(t) - t = t^3 P(t^2), the leading parts with their errors.
    let square = two_square(t.hi);
    let z = square.hi;
    let cube = two_product(t.hi, z);
    let p = fast_two_sum(t.hi.like(ATAN[0]), z * polynomial(z, &ATAN[1..]));
    let low = two_product(cube.hi, p.hi);
    let low_rest = low.lo + (cube.hi * p.lo + (cube.lo + t.hi * square.lo) * p.hi);
    // The derivative of atan is 1 / (1 + z), here crudely.
    let low_rest = low_rest + t.lo * (1.0 - z * 0.5);
    let sign = negative.select(t.hi.like(-1.0), 1.0);
    let s = fast_two_sum(turns * HALF_PI[0], t.hi * sign);
    let r = two_sum(s.hi, low.hi * sign);
    r.hi + (r.lo + (s.lo + (turns * HALF_PI[1] + low_rest * sign)))
}

/// `low / high` for positive numbers given by their [`normalized`] bits, `low` not above.
fn proper_fraction<'b>(low: Value<'b>, high: Value<'b>) -> Sum<'b> {
    let b = low.builder();
    let q = quotient(low.bitcast(U32), high.bitcast(U32));
    let e = (low >> 23) - (high >> 23) + q.exponent;
    let unit = e.gt(-100).select(e + 104, b.i32(0)) << 23;
    Sum { hi: assemble(&q, e).bitcast(F32), lo: q.rest * unit.bitcast(F32) }
}

/// Inverse tangent, within 0.8 ulp.
pub fn atan(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let large = magnitude.gt(0x3f80_0000);
    let one = b.i32(0x3f80_0000);
    // Above 2^60 the quotient is negligible.
    let quotient = proper_fraction(one, magnitude.max(0x3f80_0000u32).min(0x5d80_0000u32).bitcast(I32));
    let t = Sum { hi: large.select(quotient.hi, magnitude.bitcast(F32)), lo: large.select(quotient.lo, 0.0) };
    let y = arc_tangent(t, large.select(x.like(1.0), 0.0), large).bitcast(U32);
    let result = magnitude.lt(0x3980_0000).select(magnitude, y) | (bits & SIGN);
    select_bits(magnitude.gt(INF), NAN, result)
}

/// Angle of the point (x, y), within 0.85 ulp.
pub fn atan2<'b>(y: Value<'b>, x: Value<'b>) -> Value<'b> {
    let (uy, ux) = (y.bitcast(U32), x.bitcast(U32));
    let (ay, ax) = (uy & MAGNITUDE, ux & MAGNITUDE);
    let steep = ay.gt(ax);
    let (low, high) = (steep.select(ax, ay), steep.select(ay, ax));
    let t = proper_fraction(normalized(low), normalized(high));
    // Arguments of which one is zero or infinite, and equal arguments.
    let vanishes = low.eq(0) | (high.ge(INF) & low.lt(INF));
    let same = low.eq(high) & !vanishes;
    let hi = vanishes.select(x.like(0.0), same.select(x.like(1.0), t.hi));
    let lo = (vanishes | same).select(x.like(0.0), t.lo);
    let back = ux.ge(SIGN);
    // Quadrants: t, pi/2 - t, pi - t, pi/2 + t.
    let turns = steep.select(x.like(1.0), back.select(x.like(2.0), 0.0));
    let angle = arc_tangent(Sum { hi, lo }, turns, steep ^ back);
    // The angle of a tiny quotient is the quotient; adding zeros could flush it.
    let plain = !steep & !back & hi.lt(0.000_1);
    let bits = plain.select(hi, angle).bitcast(U32) | (uy & SIGN);
    select_bits(ax.gt(INF) | ay.gt(INF), NAN, bits)
}
