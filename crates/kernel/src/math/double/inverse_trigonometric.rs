//! Inverse sine, cosine and tangent.

use super::parts::*;
use crate::builder::Value;

/// `(atan(z) - z) / z^3` in `z^2` up to 0.2362; minimax, relative to z 2^-59.
const ATAN: [f64; 8] = [
    -0.3333333333333301,
    0.19999999999809437,
    -0.14285714247622627,
    0.11111107424038251,
    -0.09090711203690835,
    0.07686092686390163,
    -0.0655245714928214,
    0.04729115546669554,
];
/// `(asin(t) - t) / t^3` in `t^2` up to one half; minimax, relative to t 2^-59.
const ASIN: [f64; 13] = [
    0.16666666666666763,
    0.07499999999970307,
    0.04464285717508112,
    0.030381942685400457,
    0.02237221561341815,
    0.017351600877858128,
    0.013980952639385874,
    0.011397843559245644,
    0.010786173576073583,
    0.003684303139755511,
    0.02176061696782462,
    -0.02107346305523046,
    0.03267464353068377,
];
/// Inverse tangents of one half and of one, pi / 2 and pi, as pairs.
const ATAN_HALF: (f64, f64) = (0.4636476090008061, 2.2698777452961687e-17);
const ATAN_ONE: (f64, f64) = (std::f64::consts::FRAC_PI_4, 3.061616997868383e-17);
const FRAC_PI_2: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17);
const PI: (f64, f64) = (std::f64::consts::PI, 1.2246467991473532e-16);

/// `atan(y / x)` for `0 <= y <= x`: the angle of the nearest of three directions, whose slopes have
/// exact products, plus a polynomial for the difference. After fdlibm's s_atan.c, with one
/// division.
fn angle<'b>(y: Value<'b>, x: Value<'b>) -> Pair<'b> {
    let b = x.builder();
    let (near_one, near_half) = (y.gt(0.72 * x), y.gt(0.236 * x));
    let slope = near_one.select(x.like(1.0), near_half.select(x.like(0.5), 0.0));
    let base = Pair::select(near_half, Pair::constant(b, ATAN_HALF), Pair::exact(x.like(0.0)));
    let base = Pair::select(near_one, Pair::constant(b, ATAN_ONE), base);
    let z = quotient(two_sum(y, -(slope * x)), two_sum(x, slope * y));
    let square = z.h * z.h;
    let rest = z.l + (z.h * square) * polynomial(square, &ATAN);
    let s = fast_two_sum(base.h, z.h);
    fast_two_sum(s.h, s.l + (base.l + rest))
}

/// See [`crate::math::atan`].
pub fn atan<'b>(x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (a, one) = (x.abs().min(2f64.powi(60)), x.like(1.0));
    let steep = a.gt(1.0);
    let r = angle(steep.select(one, a), steep.select(a, one));
    let r = Pair::select(steep, Pair::constant(b, FRAC_PI_2).plus_pair(r.neg()), r);
    (x.is_nan() | is_below(x, -28)).select(x, flip(r.value(), sign(x)))
}

/// See [`crate::math::atan2`].
pub fn atan2<'b>(y: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ay, ax) = (magnitude(y), magnitude(x));
    let steep = ay.gt(ax);
    let (least, most) = (steep.select(ax, ay), steep.select(ay, ax));
    let ((n, en), (d, ed)) = (split_exponent(least), split_exponent(most));
    // The angle of a small ratio is the ratio; its exponent is restored at the end.
    let exponent = en - ed;
    let near = exponent.max(-60);
    let r = angle(n * power_of_two(near), d);
    // Two infinities have the exponents and mantissas of equal numbers.
    let axis = least.eq(0) | (most.eq(INFINITY) & least.ne(INFINITY));
    let zero = Pair::exact(x.like(0.0));
    let r = Pair::select(axis, zero, r);
    let left = is_negative(x);
    let offset = Pair::select(left, Pair::constant(b, PI), zero);
    let offset = Pair::select(steep, Pair::constant(b, FRAC_PI_2), offset);
    let plain = !steep & !left;
    let turned = Pair::select(steep.ne(left), r.neg(), r);
    let s = fast_two_sum(offset.h, turned.h);
    let angle = s.h + (s.l + (offset.l + turned.l));
    let angle = (plain & !axis).select(scale(angle, exponent - near), angle);
    let nan = ax.gt(INFINITY) | ay.gt(INFINITY);
    nan.select(special(b, NAN), flip(angle, sign(y)))
}

/// `asin(t) = t + l` for `t = |x|`, or for `t = sqrt((1 - |x|) / 2)` where `|x|` is above one half.
fn small_sine(x: Value<'_>) -> (Value<'_>, Pair<'_>) {
    let a = x.abs();
    let large = a.gt(0.5);
    let z = large.select(0.5 * (1.0 - a), a * a);
    let t = Pair::select(large, square_root(z), Pair::exact(a));
    (large, Pair::new(t.h, t.l + (t.h * z) * polynomial(z, &ASIN)))
}

/// NaN outside -1..=1.
fn in_domain<'b>(x: Value<'b>, result: Value<'b>) -> Value<'b> {
    magnitude(x).gt(ONE).select(special(x.builder(), NAN), result)
}

/// `offset + r`, for an `r` that is not above `offset`, or for a zero `offset`.
fn add<'b>(offset: Pair<'b>, r: Pair<'b>) -> Value<'b> {
    let s = fast_two_sum(offset.h, r.h);
    s.h + (s.l + (offset.l + r.l))
}

/// See [`crate::math::asin`].
pub fn asin<'b>(x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (large, r) = small_sine(x);
    let zero = Pair::exact(x.like(0.0));
    // pi / 2 - 2 asin(sqrt((1 - x) / 2))
    let offset = Pair::select(large, Pair::constant(b, FRAC_PI_2), zero);
    let y = add(offset, r.times_power(large.select(x.like(-2.0), 1.0)));
    in_domain(x, is_below(x, -28).select(x, flip(y, sign(x))))
}

/// See [`crate::math::acos`].
pub fn acos<'b>(x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (large, r) = small_sine(x);
    let zero = Pair::exact(x.like(0.0));
    // 2 asin(sqrt((1 - x) / 2)); pi / 2 - asin(x) in the middle; pi less the angle of -x on the
    // left.
    let left = is_negative(x);
    let offset = Pair::select(left, Pair::constant(b, PI), zero);
    let offset = Pair::select(large, offset, Pair::constant(b, FRAC_PI_2));
    let factor = large.select(x.like(2.0), -1.0);
    let factor = left.select(large.select(x.like(-2.0), 1.0), factor);
    in_domain(x, add(offset, r.times_power(factor)))
}
