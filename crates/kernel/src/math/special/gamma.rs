//! The logarithm of the gamma function, and its derivatives.
//!
//! Between 1/2 and 3 by polynomials with the zeros at 1 and 2 (the root of digamma) divided out, up to 8 (10) by the
//! recurrence, above by Stirling's series, and left of zero by reflection (DLMF 5.4 to 5.11); the logarithm by the
//! recurrence there too, as far as its zeros go.

use super::polynomial::piecewise;
use super::sum::{Sum, log_sum, magnitude, two_product, two_sum};
use super::tables::*;
use crate::builder::Value;
use crate::math;
use crate::types::ScalarType;
use std::f64::consts::PI;

/// `lgamma(1 + z)` for z of -0.3 to 2.
pub fn lgamma1p(z: Value<'_>) -> Sum<'_> {
    let ratio = piecewise(z, &LGAMMA_1, &[(z.gt(0.25), &LGAMMA_2), (z.gt(1.0), &LGAMMA_3)]);
    let less = two_sum(z, z.like(-1.0));
    let zeros = two_product(z, less.hi);
    let zeros = Sum { hi: zeros.hi, lo: zeros.lo + z * less.lo };
    // Near zero the product of errors is below the normal numbers: there it is z times a constant.
    let product = zeros.times(ratio);
    let tiny = z.abs().lt(TINY);
    Sum { hi: tiny.select(zeros.hi * ratio.hi, product.hi), lo: tiny.select(z.like(0.0), product.lo) }
}

/// Below it, squares of numbers vanish beside 1 in both types.
const TINY: f64 = 1e-18;

/// `sin(pi x)`, the argument reduced without error.
pub fn sin_pi(x: Value<'_>) -> Value<'_> {
    math::sin((x - x.round()) * PI)
}

/// How far left of zero the recurrence is taken: gamma is 1 or -1 at so many points that a type can tell from the poles.
fn reach(scalar: ScalarType) -> f64 {
    if scalar == ScalarType::F64 { 18.0 } else { 10.0 }
}

/// `log |gamma(x)|`; infinite at zero and the negative integers.
pub fn lgamma(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let a = magnitude(x);
    // Left of 0.7 gamma(1 + z), z = x + n, over x (x + 1) .. (x + n); above (a - 1) (a - 2) .. gamma(1 + z).
    let left = x.lt(0.7) & x.gt(-reach(x.scalar()));
    let large = a.ge(8.0) & !left;
    let z = b.var(left.select(x, a - 1.0));
    let (hi, lo) = (b.var(left.select(x, x.like(1.0))), b.var(x.like(0.0)));
    let step = left.select(x.like(1.0), x.like(-1.0));
    b.while_(
        || left.select(z.get().lt(-0.3), z.get().ge(2.0) & !large),
        || {
            let next = z.get() + step;
            let product = Sum { hi: hi.get(), lo: lo.get() }.times(Sum::exact(left.select(next, z.get())));
            hi.set(product.hi);
            lo.set(product.lo);
            z.set(next);
        },
    );
    let near = lgamma1p(large.select(x.like(0.5), z.get()));
    let log = log_sum(large.select(a, magnitude(hi.get())));
    let log = Sum { hi: log.hi, lo: log.lo + large.select(x.like(0.0), lo.get() / hi.get()) };
    let middle = two_sum(near.hi, left.select(-log.hi, log.hi));
    let middle = middle.hi + (middle.lo + (near.lo + left.select(-log.lo, log.lo)));
    // (a - 1/2) (log a - 1) + (log(2 pi) - 1) / 2 + the rest
    let c = large.select(a, x.like(8.0));
    let r = math::reciprocal(c);
    let factor = two_sum(log.hi, x.like(-1.0));
    let factor = Sum { hi: factor.hi, lo: factor.lo + log.lo };
    let lead = Sum::exact(c - 0.5).times(factor);
    let sum = two_sum(lead.hi, x.like(HALF_LOG_TAU_LESS_HALF));
    let far = sum.hi + (sum.lo + (lead.lo + LGAMMA_FAR.at(r * r) * r));
    let far = a.gt(1e35).select(a * factor.hi, far);

    let result = b.var(large.select(far, middle));
    b.if_(x.lt(0) & large & !x.is_inf(), || {
        // gamma(-a) gamma(a) = -pi / (a sin(pi a))
        let sine = sin_pi(a).abs();
        result.set(math::log(PI / (sine * a)) - far);
    });
    let pole = x.is_zero() | (x.lt(0) & x.eq(x.floor()));
    let result = (x.is_inf() | pole).select(x.like(f64::INFINITY), result.get());
    x.is_nan().select(x, result)
}

/// `(log(2 pi) - 1) / 2`
const HALF_LOG_TAU_LESS_HALF: f64 = 0.418_938_533_204_672_7;

/// Derivative of [`lgamma`]. At zero infinite with the other sign, NaN at the negative integers.
pub fn digamma(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let negative = x.lt(0);
    let y = negative.select(1.0 - x, x);
    let large = y.ge(10.0);
    let small = y.lt(1.0);
    // digamma(1 + z) plus the fraction's sum of reciprocals.
    let z = b.var(small.select(y, y - 1.0));
    let numerator = b.var(small.select(x.like(-1.0), x.like(0.0)));
    let denominator = b.var((small & y.gt(TINY)).select(y, x.like(1.0)));
    b.while_(
        || z.get().ge(1.0) & !large,
        || {
            numerator.set(numerator.get() * z.get() + denominator.get());
            denominator.set(denominator.get() * z.get());
            z.set(z.get() - 1.0);
        },
    );
    let root = DIGAMMA_ROOT.of(x);
    let z = large.select(x.like(0.5), z.get());
    let distance = (z - root.hi) - root.lo;
    let near = DIGAMMA.at(z) * distance + numerator.get() / denominator.get();
    let r = math::reciprocal(large.select(y, x.like(10.0)));
    let square = r * r;
    let log = two_sum(math::log(large.select(y, x.like(10.0))), r * -0.5);
    let far = log.hi + (log.lo - square * DIGAMMA_FAR.at(square));
    let positive = large.select(far, near);

    let result = b.var(positive);
    b.if_(negative, || {
        let rest = x - x.round();
        let reflected = positive - PI / math::tan(rest * PI);
        result.set(rest.eq(0).select(x.like(f64::NAN), reflected));
    });
    let pole = math::div(x.like(-1.0), x);
    let result = x.abs().lt(TINY).select(pole, result.get());
    let result = (x.is_inf() & !negative).select(x, result);
    (x.is_nan() | (x.is_inf() & negative)).select(x.like(f64::NAN), result)
}

/// `log gamma*(a)`'s exponential: `gamma(a) = sqrt(2 pi / a) (a / e)^a gamma*(a)`, for a of 8 and more.
pub fn scaled_gamma(a: Value<'_>) -> Value<'_> {
    let r = math::reciprocal(a);
    math::exp(LGAMMA_FAR.at(r * r) * r)
}
