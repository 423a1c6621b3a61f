//! The regularized incomplete gamma functions P and Q.
//!
//! If both arguments are large and near each other, N. M. Temme's uniform expansion is used (DLMF
//! 8.12), whose cost does not grow with them; otherwise the power series of P or of Q's complement,
//! or the continued fraction of Q, as in W. Gautschi, "A computational procedure for incomplete
//! gamma functions" (1979). At most [`LIMIT`] terms.

use super::gamma::{lgamma1p, scaled_gamma};
use super::sum::{erfc_lifted, exp_lifted, lift, lowered, pow_lifted, product};
use super::tables::{TEMME_DOUBLE, TEMME_SINGLE};
use crate::builder::Value;
use crate::math;
use crate::types::ScalarType;
use std::f64::consts::TAU;

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;
/// The most terms of a series or of a continued fraction.
const LIMIT: u32 = 2000;
/// The least `a` of Temme's expansion, and how far from 1 the ratio of the arguments may be.
const TEMME_FROM: f64 = 30.0;
const TEMME_REACH: f64 = 0.3;

fn epsilon(x: Value<'_>) -> f64 {
    if x.scalar() == ScalarType::F64 { f64::EPSILON / 4.0 } else { f64::from(f32::EPSILON) / 4.0 }
}

/// `log(x / a) - s` for `s = (x - a) / a`, accurate where x is near a too.
fn log_less<'b>(a: Value<'b>, x: Value<'b>, s: Value<'b>) -> Value<'b> {
    // With t = s / (2 + s): log(1 + s) = 2 atanh(t), and s - 2 t = s t.
    let t = s / (2.0 + s);
    let square = t * t;
    let terms = if s.scalar() == ScalarType::F64 { 13 } else { 6 };
    let odd = |k: i32| 2.0 / f64::from(2 * k + 3);
    let tail = (0..terms).rev().fold(s.like(0.0), |sum, k| sum * square + odd(k));
    let near = t * square * tail - s * t;
    s.abs().lt(0.4).select(near, math::log(x / a) - s)
}

/// `x^a e^-x / gamma(a + 1) * 2^lift`
fn power_part<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let result = b.var(a.like(0.0));
    b.if_else(
        a.lt(10.0),
        || {
            // Beyond 800 it is 0 even for f64, and no power overflows before.
            let limit = if x.scalar() == ScalarType::F64 { 800.0 } else { 120.0 };
            let c = x.min(limit);
            let gamma = math::special::lgamma(a + 1.0);
            // In two steps, so that the first one does not underflow.
            let half = math::exp(c * -0.5);
            let below = c.lt(1.0);
            let first = pow_lifted(c, a, below) * half;
            let first = below.select(first, first * 2f64.powi(lift(x.scalar()) as i32));
            result.set(first * half * math::exp(-gamma));
        },
        || {
            let exponent = a * log_less(a, x, (x - a) / a);
            result.set(exp_lifted(exponent) / (math::sqrt(a * TAU) * scaled_gamma(a)));
        },
    );
    result.get()
}

/// P by its power series: for x up to about a.
fn lower_series<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let (n, term, sum) = (b.var(a), b.var(a.like(1.0)), b.var(a.like(1.0)));
    let left = b.var(b.u32(LIMIT));
    b.while_(
        || term.get().gt(sum.get() * epsilon(x)) & left.get().gt(0),
        || {
            n.set(n.get() + 1.0);
            term.set(term.get() * (x / n.get()));
            sum.set(sum.get() + term.get());
            left.set(left.get() - 1);
        },
    );
    lowered(power_part(a, x) * sum.get())
}

/// Q by the series of its complement: for small a and x, where P is near 1 and the difference would
/// be lost.
fn upper_series<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let (n, factor, sum) = (b.var(a.like(0.0)), b.var(a.like(1.0)), b.var(a.like(0.0)));
    let (term, left) = (b.var(a.like(1.0)), b.var(b.u32(LIMIT)));
    b.while_(
        || term.get().abs().gt(sum.get().abs() * epsilon(x)) & left.get().gt(0),
        || {
            n.set(n.get() + 1.0);
            factor.set(factor.get() * (-x / n.get()));
            term.set(factor.get() / (a + n.get()));
            sum.set(sum.get() + term.get());
            left.set(left.get() - 1);
        },
    );
    let log = a * math::log(x);
    let gamma = lgamma1p(a.min(1.9)).value();
    let q = -math::expm1(log - gamma) - math::exp(log - gamma) * (a * sum.get());
    // For a tiny a, which may be subnormal, the result is a E1(x).
    a.lt(1e-18).select(product(a, -(math::log(x) + sum.get() + EULER)), q)
}

/// Q by its continued fraction, for x above a and 1.
fn upper_fraction<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let b = a.builder();
    let (y, z, n) = (b.var(1.0 - a), b.var(x + (2.0 - a)), b.var(a.like(0.0)));
    let (p2, q2) = (b.var(a.like(1.0)), b.var(x));
    let (p1, q1) = (b.var(x + 1.0), b.var((x + (2.0 - a)) * x));
    let value = b.var(p1.get() / q1.get());
    let error = b.var(a.like(1.0));
    let left = b.var(b.u32(LIMIT));
    // Large enough to prevent underflow, small enough for its square.
    let big = if x.scalar() == ScalarType::F64 { 2f64.powi(200) } else { 2f64.powi(40) };
    b.while_(
        || error.get().gt(epsilon(x)) & left.get().gt(0),
        || {
            n.set(n.get() + 1.0);
            y.set(y.get() + 1.0);
            z.set(z.get() + 2.0);
            let weight = y.get() * n.get();
            let p = p1.get() * z.get() - p2.get() * weight;
            let q = q1.get() * z.get() - q2.get() * weight;
            let next = p / q;
            error.set(q.eq(0).select(a.like(1.0), ((value.get() - next) / next).abs()));
            value.set(q.eq(0).select(value.get(), next));
            let shrink = p.abs().gt(big).select(a.like(1.0 / big), a.like(1.0));
            p2.set(p1.get() * shrink);
            q2.set(q1.get() * shrink);
            p1.set(p * shrink);
            q1.set(q * shrink);
            left.set(left.get() - 1);
        },
    );
    // Beyond it both factors are out of range, and the result is 0 in either type.
    x.gt(1e5).select(a.like(0.0), lowered(product(a, power_part(a, x) * value.get())))
}

/// P for x below a, Q above, by Temme's expansion.
fn uniform<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let s = (x - a) / a;
    let half_square = -log_less(a, x, s).min(0.0);
    let magnitude = math::sqrt(2.0 * half_square);
    let below = s.lt(0);
    let eta = below.select(-magnitude, magnitude);
    let table = if a.scalar() == ScalarType::F64 { TEMME_DOUBLE } else { TEMME_SINGLE };
    let r = math::reciprocal(a);
    let row = |c: &[f64]| c.iter().rev().fold(a.like(0.0), |sum, &c| sum * eta + c);
    let sum = table.iter().rev().fold(a.like(0.0), |sum, c| sum * r + row(c));
    let rest = exp_lifted(-(a * half_square)) / math::sqrt(a * TAU) * sum;
    let rest = below.select(-rest, rest);
    lowered(0.5 * erfc_lifted(math::sqrt(a * half_square)) + rest)
}

/// P, or Q for `upper`, of `a` and `x`. NaN for negative arguments, and where both are zero or both
/// infinite.
fn regularized<'b>(a: Value<'b>, x: Value<'b>, upper: bool) -> Value<'b> {
    let b = a.builder();
    let one = a.like(1.0);
    let plain = a.is_above_zero() & x.is_above_zero() & !a.is_inf() & !x.is_inf();
    let (ca, cx) = (plain.select(a, one), plain.select(x, one));
    let complement = |is_upper: bool, y: Value<'b>| if is_upper == upper { y } else { 1.0 - y };
    let result = b.var(one);
    let near = ca.gt(TEMME_FROM) & (cx - ca).abs().lt(ca * TEMME_REACH);
    let fraction = cx.gt(1.1) & cx.gt(ca);
    b.if_else(
        near,
        || {
            let y = uniform(ca, cx);
            result.set(cx.lt(ca).select(complement(false, y), complement(true, y)));
        },
        || {
            b.if_else(
                fraction,
                || result.set(complement(true, upper_fraction(ca, cx))),
                || {
                    // If P is above about 9/10, Q is computed.
                    let small = cx.le(0.5);
                    let log = math::log(small.select(cx, a.like(0.5)));
                    let most_below = small.select(-0.4 / log, cx * 1.1);
                    b.if_else(
                        cx.le(1.1) & most_below.ge(ca),
                        || result.set(complement(true, upper_series(ca, cx))),
                        || result.set(complement(false, lower_series(ca, cx))),
                    );
                },
            );
        },
    );
    let (low, high) = if upper { (one, a.like(0.0)) } else { (a.like(0.0), one) };
    let nan = a.like(f64::NAN);
    let y = (a.is_nan() | x.is_nan()).select(nan, result.get());
    // Special cases are tested in the CPU's order, before NaN in the other argument.
    let y = x.is_inf().select(high, y);
    let y = a.is_inf().select(x.is_inf().select(nan, low), y);
    let y = x.is_zero().select(low, y);
    let y = a.is_zero().select(x.is_above_zero().select(high, nan), y);
    (a.is_below_zero() | x.is_below_zero()).select(nan, y)
}

/// `P(a, x)`: the integral of `t^(a-1) e^-t` from 0 to x, over gamma(a).
pub fn igamma<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    regularized(a, x, false)
}

/// `Q(a, x) = 1 - P(a, x)`
pub fn igammac<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    regularized(a, x, true)
}
