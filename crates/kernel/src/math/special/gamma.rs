//! The logarithm of the gamma function, and its derivatives.
//!
//! Between 1/2 and 3 by polynomials with the zeros at 1 and 2 (the root of digamma) divided out, up
//! to 8 (10) by the recurrence, above by Stirling's series, and left of zero by reflection (DLMF
//! 5.4 to 5.11); the logarithm by the recurrence there, too, in the range of its zeros.

use super::polynomial::piecewise;
use super::sum::{Sum, SumVar, log_sum, magnitude, two_product, two_sum};
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
    // Near zero the product of errors would be subnormal; there the result is z times a constant.
    let product = zeros.times(ratio);
    let tiny = z.abs().lt(TINY);
    Sum { hi: tiny.select(zeros.hi * ratio.hi, product.hi), lo: tiny.select(z.like(0.0), product.lo) }
}

/// Below it, adding the square of a number to 1 gives 1 in both types.
const TINY: f64 = 1e-18;

/// `sin(pi x)`, with an exact reduction of the argument.
pub fn sin_pi(x: Value<'_>) -> Value<'_> {
    math::sin((x - x.round()) * PI)
}

/// The negative arguments for which the recurrence is used: where a type can distinguish the points
/// at which gamma is 1 or -1 from the poles.
fn reach(scalar: ScalarType) -> f64 {
    if scalar == ScalarType::F64 { 18.0 } else { 10.0 }
}

/// `log |gamma(x)|`; infinite at zero and the negative integers.
pub fn lgamma(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let a = magnitude(x);
    // Left of 0.7 gamma(1 + z), z = x + n, over x (x + 1) .. (x + n); above (a - 1) (a - 2) ..
    // gamma(1 + z).
    let left = x.lt(0.7) & x.gt(-reach(x.scalar()));
    let large = a.ge(8.0) & !left;
    let z = b.var(left.select(x, a - 1.0));
    let product = SumVar::new(left.select(x, x.like(1.0)));
    let step = left.select(x.like(1.0), x.like(-1.0));
    b.while_(
        || left.select(z.get().lt(-0.3), z.get().ge(2.0) & !large),
        || {
            let next = z.get() + step;
            product.set(product.get().times(Sum::exact(left.select(next, z.get()))));
            z.set(next);
        },
    );
    let near = lgamma1p(large.select(x.like(0.5), z.get()));
    let product = product.get();
    let log = log_sum(large.select(a, magnitude(product.hi)));
    // The logarithm of the product, with its rounding error if it has several factors; or of a.
    let r = math::reciprocal(large.select(a, product.hi)).max(-1e30).min(1e30);
    let log = Sum { hi: log.hi, lo: log.lo + large.select(x.like(0.0), product.lo * r) };
    let middle = two_sum(near.hi, left.select(-log.hi, log.hi));
    let middle = middle.hi + (middle.lo + (near.lo + left.select(-log.lo, log.lo)));
    // (a - 1/2) (log a - 1) + (log(2 pi) - 1) / 2 + the remainder
    let c = large.select(a, x.like(8.0));
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
    // Left of 1 digamma(1 + z), z = x + n, less the sum of 1 / x to 1 / (x + n); above digamma(1 +
    // z) plus such a sum. The sums are one fraction.
    let left = x.lt(1.0) & x.gt(-10.0);
    let y = (negative & !left).select(1.0 - x, x);
    let large = y.ge(10.0);
    let z = SumVar::new(left.select(x, y - 1.0));
    let step = left.select(x.like(1.0), x.like(-1.0));
    let numerator = SumVar::new(left.select(x.like(1.0), x.like(0.0)));
    let denominator = SumVar::new((left & x.abs().gt(TINY)).select(x, x.like(1.0)));
    b.while_(
        || left.select(z.get().hi.lt(0), z.get().hi.ge(1.0) & !large),
        || {
            // Exact, except for the last step from a number above -1/2, which has a rounding error.
            let next = two_sum(z.get().hi, step);
            let factor = Sum { hi: left.select(next.hi, z.get().hi), lo: left.select(next.lo, x.like(0.0)) };
            let (n, d) = (numerator.get().times(factor), denominator.get());
            let lead = two_sum(n.hi, d.hi);
            numerator.set(Sum { hi: lead.hi, lo: lead.lo + (n.lo + d.lo) });
            denominator.set(d.times(factor));
            z.set(next);
        },
    );
    let root = DIGAMMA_ROOT.of(x);
    let z = Sum { hi: large.select(x.like(0.5), z.get().hi), lo: z.get().lo };
    let distance = two_sum(z.hi, -root.hi);
    let near = DIGAMMA.sum(z.hi).times(Sum { hi: distance.hi, lo: distance.lo + (z.lo - root.lo) });
    let (n, d) = (numerator.get(), denominator.get());
    let r = math::reciprocal(large.select(y, d.hi));
    let quotient = n.hi * r;
    let back = two_product(quotient, d.hi);
    let rest = (((n.hi - back.hi) - back.lo) + (n.lo - quotient * d.lo)) * r;
    let total = two_sum(near.hi, left.select(-quotient, quotient));
    let near = total.hi + (total.lo + (near.lo + left.select(-rest, rest)));
    let square = r * r;
    let log = two_sum(math::log(large.select(y, x.like(10.0))), r * -0.5);
    let far = log.hi + (log.lo - square * DIGAMMA_FAR.at(square));

    let result = b.var(large.select(far, near));
    b.if_(negative & !left, || result.set(far - PI / math::tan((x - x.round()) * PI)));
    let pole = math::div(x.like(-1.0), x);
    let result = (negative & x.eq(x.floor())).select(x.like(f64::NAN), result.get());
    let result = x.abs().lt(TINY).select(pole, result);
    let result = (x.is_inf() & !negative).select(x, result);
    (x.is_nan() | (x.is_inf() & negative)).select(x.like(f64::NAN), result)
}

/// `log gamma*(a)`'s exponential: `gamma(a) = sqrt(2 pi / a) (a / e)^a gamma*(a)`, for a of 8 and
/// more.
pub fn scaled_gamma(a: Value<'_>) -> Value<'_> {
    let r = math::reciprocal(a);
    math::exp(LGAMMA_FAR.at(r * r) * r)
}
