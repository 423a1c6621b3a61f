//! The error function and its complement.
//!
//! Below one half, erf by a polynomial. Above, `erfc(x) = e^(-x^2) t h(t)` with `t = 1 / (x + 4)`:
//! one polynomial suffices up to the argument at which the result underflows, as in M. M. Shepherd
//! and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981). The
//! rounding errors of `x^2` and `t` are taken into account.

use super::exponential::{core, reduce};
use super::parts::*;
use crate::builder::Value;

/// 2 / sqrt(pi) as a pair.
const FACTOR: (f64, f64) = (std::f64::consts::FRAC_2_SQRT_PI, 1.533545961316588e-17);

/// `(erf(x) - 2 x / sqrt(pi)) / x^3` in `x^2` up to 1/4; minimax, relative to x 2^-65.
const ERF: [f64; 9] = [
    -0.37612638903183754,
    0.11283791670954917,
    -0.02686617064501507,
    0.005223977622287033,
    -0.000854832653849422,
    0.00012055287921409314,
    -1.4923066473872526e-05,
    1.637249863242751e-06,
    -1.4631561463084052e-07,
];

/// `erfc(x) e^(x^2) / t` in `u = t - 1/8`, for x from 0.5 to 32; minimax, relative 2^-63. The
/// remainder of the first coefficient follows.
const H: [f64; 23] = [
    1.095995661000491,
    7.812389832647056,
    49.48535694497517,
    276.917161632377,
    1355.1681039483228,
    5701.990391476374,
    20022.955844428976,
    55302.010105043366,
    102543.27788858638,
    37709.65905159443,
    -488609.06742216734,
    -1518809.9320679936,
    -249818.64065076486,
    10368729.302784078,
    20648966.450390324,
    -50085166.39036752,
    -238599671.22412455,
    167685951.51472953,
    2276926756.918049,
    10401506.75804442,
    -20078231104.017788,
    -4613334925.155298,
    127629319732.08646,
];
const H_REST: f64 = 5.764406392987998e-17;
/// The derivative of [`H`], approximately.
const SLOPE: [f64; 5] =
    [7.7944331300082075, 95.95737961672562, 837.0065552149573, 6828.629491101786, 31327.552869548635];

/// `erfc(a) = y 2^k` for a between 0.5 and 28.
fn tail(a: Value<'_>) -> (Pair<'_>, Value<'_>) {
    let square = two_product(a, a);
    let (k, r) = reduce(square.neg());
    let e = core(r).exp().normalized();

    let d = two_sum(a, a.like(4.0));
    let t = reciprocal_estimate(d.h);
    let t = t + t * (1.0 - d.h * t);
    // Without its last bit, u is exact.
    let t = float(bits(t) & !1u64);
    let p = two_product(t, d.h);
    let correction = t * (((1.0 - p.h) - p.l) - t * d.l);
    let u = t - 0.125;
    // The last two steps of Horner's rule with the errors of their sums, the last one with that of
    // its product.
    let inner = two_sum(a.like(H[1]), u * polynomial(u, &H[2..]));
    let outer = two_product(u, inner.h);
    let sum = two_sum(a.like(H[0]), outer.h);
    let rest = sum.l + (outer.l + u * inner.l + H_REST) + correction * polynomial(u, &SLOPE);
    let h = fast_two_sum(sum.h, rest);
    (e.times(h).times(Pair::new(t, correction)), k)
}

/// `erf(a)` for a between 2^-30 and 0.5.
fn near_zero(a: Value<'_>) -> Pair<'_> {
    let z = a * a;
    let lead = two_product(a, a.like(FACTOR.0));
    fast_two_sum(lead.h, (lead.l + a * FACTOR.1) + (a * z) * polynomial(z, &ERF))
}

/// See [`crate::math::erf`].
pub fn erf<'b>(x: Value<'b>) -> Value<'b> {
    let a = x.abs();
    // Beyond 6 it is 1.
    let (y, k) = tail(a.max(0.5).min(6.0));
    let y = y.times_power(power_of_two(k));
    let one = fast_two_sum(x.like(1.0), -y.h);
    let far = one.h + (one.l - y.l);
    let near = near_zero(a).value();
    let y = is_below(x, -1).select(near, far);
    let (mantissa, exponent) = split_exponent(magnitude(x));
    let y = is_below(x, -28).select(scale(mantissa * FACTOR.0, exponent), y);
    (x.is_nan() | magnitude(x).eq(0)).select(x, flip(y, sign(x)))
}

/// See [`crate::math::erfc`].
pub fn erfc<'b>(x: Value<'b>) -> Value<'b> {
    erfc_scaled(x, 0)
}

/// `erfc(x) * 2^n` for an n of 0 to 640, and an x that is not negative where n is above 0; no bits
/// are lost where `erfc(x)` alone would be subnormal.
pub fn erfc_scaled(x: Value<'_>, n: u32) -> Value<'_> {
    let a = x.abs();
    let (y, k) = tail(a.max(0.5).min(if n == 0 { 28.0 } else { 32.0 }));
    let right = scale(y.value(), k + n);
    // 2 - erfc(a) on the left, 1 - erf(x) in the middle.
    let near = is_below(x, -1);
    let negative = is_negative(x);
    let e = near_zero(a);
    let e = Pair::select(negative, e.neg(), e);
    let term = Pair::select(near, e, y.times_power(power_of_two(k.max(-200))));
    let sum = fast_two_sum(near.select(x.like(1.0), 2.0), -term.h);
    let sum = sum.h + (sum.l - term.l);
    let sum = if n == 0 { sum } else { sum * 2f64.powi(n as i32) };
    x.is_nan().select(x, (near | negative).select(sum, right))
}
