//! Bessel functions of orders 0 and 1 of real arguments.
//!
//! Modified ones: in powers of x^2 near zero, elsewhere an exponential, 1 / sqrt(x), and a
//! polynomial in 1 / x. The others: up to 8 in powers of x^2 with their zeros divided out, above
//! Hankel's form with sine and cosine (DLMF 10.17). The sum of angles is resolved by the sine and
//! cosine of x itself, whose reduction is exact. At the infinities all but the scaled ones are NaN,
//! as on the CPU.

use super::polynomial::{Constant, Polynomial, piecewise};
use super::sum::{Sum, exp_times, flipped_by, magnitude, product};
use super::tables::*;
use crate::builder::Value;
use crate::math;
use std::f64::consts::{FRAC_2_PI, PI};

/// The argument at which the modified functions of the first kind change their formula.
const MODIFIED_EDGE: f64 = 8.0;

struct Modified {
    near: &'static Polynomial,
    far: &'static Polynomial,
    odd: bool,
}

const FIRST: [Modified; 2] =
    [Modified { near: &I0, far: &I0_FAR, odd: false }, Modified { near: &I1, far: &I1_FAR, odd: true }];

/// I0, or I1 over x / 2, of |x| up to 8.
fn modified_near<'b>(x: Value<'b>, m: &Modified) -> Value<'b> {
    let t = x * x;
    1.0 + t * m.near.at(t)
}

fn modified(x: Value<'_>, order: usize, scaled: bool) -> Value<'_> {
    let m = &FIRST[order];
    let a = magnitude(x);
    let near = a.le(MODIFIED_EDGE);
    let c = near.select(a, x.like(1.0));
    let low = modified_near(c, m);
    let low = if scaled { low * math::exp(-c) } else { low };
    let low = if m.odd { product(c, 0.5 * low) } else { low };
    let c = near.select(x.like(MODIFIED_EDGE), a);
    // The argument is limited to exp_times' range; beyond it the result is infinite.
    let c = if scaled { c } else { c.min(800.0) };
    let factor = m.far.sum(math::reciprocal(c));
    let root = math::rsqrt(c);
    let high = if scaled { factor.value() * root } else { exp_times(Sum::exact(c), factor.times(Sum::exact(root))) };
    let y = near.select(low, high);
    let y = x.is_inf().select(x.like(if scaled { 0.0 } else { f64::NAN }), y);
    let y = if m.odd { x.is_below_zero().select(flipped_by(y, x), y) } else { y };
    x.is_nan().select(x, y)
}

/// Modified Bessel function of the first kind of order 0.
pub fn i0(x: Value<'_>) -> Value<'_> {
    modified(x, 0, false)
}

/// `i0(x) e^-|x|`
pub fn i0e(x: Value<'_>) -> Value<'_> {
    modified(x, 0, true)
}

/// Modified Bessel function of the first kind of order 1.
pub fn i1(x: Value<'_>) -> Value<'_> {
    modified(x, 1, false)
}

/// `i1(x) e^-|x|`
pub fn i1e(x: Value<'_>) -> Value<'_> {
    modified(x, 1, true)
}

fn modified_second(x: Value<'_>, order: usize, scaled: bool) -> Value<'_> {
    let near = x.le(1.0);
    // Not 1 elsewhere: NVIDIA's driver would combine it into a minimum, which flushes subnormal
    // numbers.
    let c = near.select(x, x.like(0.5));
    let t = c * c;
    let log = math::log(c);
    let low = if order == 0 {
        K0.at(t) - log * modified_near(c, &FIRST[0])
    } else {
        math::reciprocal(c) + c * (K1.at(t) + 0.5 * log * modified_near(c, &FIRST[1]))
    };
    let low = if scaled { low * math::exp(c) } else { low };
    let (middle, far) = if order == 0 { (&K0_MIDDLE, &K0_FAR) } else { (&K1_MIDDLE, &K1_FAR) };
    // The argument is limited to exp_times' range; beyond it the result is 0.
    let c = near.select(x.like(2.0), if scaled { x } else { x.min(800.0) });
    let right = c.gt(2.0);
    let factor = piecewise(right.select(math::reciprocal(c), c), middle, &[(right, far)]);
    let root = math::rsqrt(c);
    let high = if scaled { factor.value() * root } else { exp_times(Sum::exact(-c), factor.times(Sum::exact(root))) };
    let high = x.is_inf().select(x.like(0.0), high);
    let y = near.select(low, high);
    let y = x.is_zero().select(x.like(f64::INFINITY), y);
    (x.is_nan() | x.is_below_zero()).select(x.like(f64::NAN), y)
}

/// Modified Bessel function of the second kind of order 0; NaN left of zero.
pub fn k0(x: Value<'_>) -> Value<'_> {
    modified_second(x, 0, false)
}

/// `k0(x) e^x`
pub fn k0e(x: Value<'_>) -> Value<'_> {
    modified_second(x, 0, true)
}

/// Modified Bessel function of the second kind of order 1; NaN left of zero.
pub fn k1(x: Value<'_>) -> Value<'_> {
    modified_second(x, 1, false)
}

/// `k1(x) e^x`
pub fn k1e(x: Value<'_>) -> Value<'_> {
    modified_second(x, 1, true)
}

/// The argument from which Hankel's form is used.
const EDGE: f64 = 8.0;

struct Order {
    zeros: [&'static Constant; 2],
    j: [&'static Polynomial; 2],
    y: [&'static Polynomial; 2],
    p: &'static Polynomial,
    q: &'static Polynomial,
}

const ORDERS: [Order; 2] = [
    Order { zeros: [&J0_ZERO_1, &J0_ZERO_2], j: [&J0_NEAR, &J0_MIDDLE], y: [&Y0_NEAR, &Y0_MIDDLE], p: &P0, q: &Q0 },
    Order { zeros: [&J1_ZERO_1, &J1_ZERO_2], j: [&J1_NEAR, &J1_MIDDLE], y: [&Y1_NEAR, &Y1_MIDDLE], p: &P1, q: &Q1 },
];

/// The argument up to which the power series is used.
const SERIES_EDGE: f64 = 1.5;

/// J0, or J1 over x / 2, of an x of 0 to 1.5: the sum of `(-x^2 / 4)^k / (k! (k + order)!)`.
fn first_series(x: Value<'_>, order: usize) -> Value<'_> {
    let t = x * x * -0.25;
    let terms = if x.scalar() == crate::types::ScalarType::F64 { 11 } else { 6 };
    let ratio = |k: usize| 1.0 / (k * (k + order)) as f64;
    let coefficient = |n: usize| (1..=n).map(ratio).product::<f64>();
    let tail = (1..=terms).rev().fold(x.like(0.0), |sum, k| sum * t + coefficient(k));
    1.0 + t * tail
}

/// J0, or J1 over x, of an x of 0 to 8.
fn first_near(x: Value<'_>, order: usize) -> Value<'_> {
    let o = &ORDERS[order];
    let t = x * x;
    let p = piecewise(t, o.j[0], &[(t.gt(20.0), o.j[1])]).value();
    let y = o.zeros.iter().fold(p, |y, zero| {
        let zero = zero.of(x);
        y * (((x - zero.hi) - zero.lo) * (x + zero.hi))
    });
    let series = first_series(x.min(SERIES_EDGE), order);
    x.lt(SERIES_EDGE).select(if order == 1 { 0.5 * series } else { series }, y)
}

/// J and Y of an x of 8 and more, by Hankel's form.
fn far(x: Value<'_>, order: usize, second: bool) -> Value<'_> {
    let o = &ORDERS[order];
    let z = 8.0 / x;
    let square = z * z;
    let (p, q) = (o.p.at(square), o.q.at(square) * z);
    let (s, c) = (math::sin(x), math::cos(x));
    // sqrt(2) times cosine and sine of x - pi/4, or of x - 3 pi/4.
    let (cos, sin) = if order == 0 { (c + s, s - c) } else { (s - c, -(s + c)) };
    let wave = if second { p * sin + q * cos } else { p * cos - q * sin };
    math::rsqrt(x) * (1.0 / PI.sqrt()) * wave
}

fn first(x: Value<'_>, order: usize) -> Value<'_> {
    let b = x.builder();
    let a = magnitude(x);
    let near = a.le(EDGE);
    let c = near.select(a, x.like(1.0));
    let low = first_near(c, order);
    let result = b.var(if order == 1 { product(c, low) } else { low });
    b.if_(!near, || result.set(far(a, order, false)));
    let y = result.get();
    let y = if order == 1 { x.is_below_zero().select(flipped_by(y, x), y) } else { y };
    (x.is_nan() | x.is_inf()).select(x.like(f64::NAN), y)
}

/// Bessel function of the first kind of order 0.
pub fn j0(x: Value<'_>) -> Value<'_> {
    first(x, 0)
}

/// Bessel function of the first kind of order 1.
pub fn j1(x: Value<'_>) -> Value<'_> {
    first(x, 1)
}

fn second(x: Value<'_>, order: usize) -> Value<'_> {
    let b = x.builder();
    let o = &ORDERS[order];
    let near = x.le(EDGE);
    let c = near.select(x, x.like(1.0));
    let t = c * c;
    let rest = piecewise(t, o.y[0], &[(t.gt(20.0), o.y[1])]).value();
    let log_part = math::log(c) * first_near(c, order);
    let low = if order == 0 {
        rest + FRAC_2_PI * log_part
    } else {
        c * rest + FRAC_2_PI * (c * log_part - math::reciprocal(c))
    };
    let result = b.var(low);
    b.if_(x.gt(EDGE), || result.set(far(x, order, true)));
    let y = x.is_zero().select(x.like(f64::NEG_INFINITY), result.get());
    (x.is_nan() | x.is_inf() | x.is_below_zero()).select(x.like(f64::NAN), y)
}

/// Bessel function of the second kind of order 0; NaN left of zero.
pub fn y0(x: Value<'_>) -> Value<'_> {
    second(x, 0)
}

/// Bessel function of the second kind of order 1; NaN left of zero.
pub fn y1(x: Value<'_>) -> Value<'_> {
    second(x, 1)
}
