//! Variance and standard deviation, optionally with the mean.
//!
//! Means and sums of squared deviations of two groups are combined as by Chan, Golub and LeVeque,
//! "Updating formulae and a pairwise algorithm for computing sample variances" (1979): no
//! cancellation, whatever the mean. Where the result may have any magnitude the squares are summed
//! at three scales, and the sum that neither overflowed nor vanished is used, after J. L. Blue, "A
//! portable Fortran program to find the Euclidean norm of a vector" (1978).

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Writes the variance over `axes`, or its `root`, to `out`, and the mean to `mean`, if given. The
/// sum of squares is divided by the number of elements minus `correction`.
pub fn variance(
    cx: &Context,
    input: &View,
    axes: Axes,
    correction: Number,
    root: bool,
    out: &View,
    mean: Option<&View>,
) -> Result<()> {
    let dtype = accumulator(input.dtype);
    let fold = Moments { scalar: dtype.compute(), results: Results::Variance { root, mean: mean.is_some() } };
    let outs: SmallVec<[&View; 2]> = [out].into_iter().chain(mean).collect();
    let numbers = &[(dtype, correction)];
    reduce(cx, &fold, &Reduction { inputs: &[input], outs: &outs, axes, tables: &[], numbers })
}

/// Accumulates the count, the mean as the sum of two floats, and the sum of squared deviations from
/// it. The mean's second float preserves the digits that the deviations would lose for a mean far
/// from zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Moments {
    /// The type of the accumulators.
    pub(crate) scalar: ScalarType,
    /// The results computed from the accumulators.
    pub(crate) results: Results,
}

/// The results of [`Moments`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Results {
    /// The variance (or its root), optionally with the mean. `numbers[0]` is the correction of the
    /// count.
    Variance {
        /// The standard deviation.
        root: bool,
        /// The mean is a result too.
        mean: bool,
    },
    /// For normalisation: the mean, `1 / sqrt(variance + numbers[0])`, the variance; without
    /// correction.
    Normalizer {
        /// Whether an infinite element makes the mean infinite, as a sum would; otherwise the mean
        /// is NaN, like the variance.
        infinite: bool,
    },
}

/// Powers of two by which deviations are scaled down or up before they are squared, if the sum of
/// the unscaled squares is too large or too small.
struct Scales {
    large: i32,
    small: i32,
    /// The range of exponents in which sums of unscaled squares are accurate.
    exponent_range: (i32, i32),
}

impl Scales {
    fn of(scalar: ScalarType) -> Scales {
        if scalar == ScalarType::F64 {
            Scales { large: -540, small: 500, exponent_range: (-900, 900) }
        } else {
            Scales { large: -80, small: 60, exponent_range: (-90, 100) }
        }
    }
}

impl Moments {
    /// Whether squares are summed at three scales.
    fn any_size(&self) -> bool {
        matches!(self.results, Results::Variance { .. })
    }

    /// The variance, or its root, from the accumulators and the corrected count.
    fn variance<'b>(&self, x: &[Value<'b>], divisor: Value<'b>, root: bool) -> Value<'b> {
        let Scales { large, small, exponent_range: (low, high) } = Scales::of(self.scalar);
        let is_large = !x[3].lt(2f64.powi(high));
        let is_small = x[3].lt(2f64.powi(low));
        let sum = is_large.select(x[4], is_small.select(x[5], x[3]));
        let power = |by: i32| {
            let of = |scale: i32| x[3].like(2f64.powi((1 - scale) * by));
            is_large.select(of(large), is_small.select(of(small), 1.0))
        };
        let variance = sum / divisor;
        // Its scale is squared, which may be out of range.
        if root { math::sqrt(variance) * power(1) } else { variance * power(1) * power(1) }
    }
}

impl Fold for Moments {
    fn name(&self) -> &'static str {
        "variance"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; if self.any_size() { 6 } else { 4 }]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); if self.any_size() { 6 } else { 4 }]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [zero, one] = [0.0, 1.0].map(|x| s.b.float(self.scalar, x));
        let x = elements[0].cast(self.scalar);
        let mut values: Values = smallvec![zero; if self.any_size() { 6 } else { 4 }];
        (values[0], values[1]) = (one, x);
        // Nothing has a finite distance from an infinite element.
        for sum in values.iter_mut().skip(3) {
            *sum = x.is_finite().select(zero, x.like(f64::NAN));
        }
        values
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let (n, k) = (x[0], y[0]);
        let count = n + k;
        let share = k / count.max(1.0);
        // If one side is empty, the other one is unchanged.
        let (left, right) = (k.eq(0.0), n.eq(0.0));
        let pick = |both: Value<'b>, i: usize| left.select(x[i], right.select(y[i], both));
        let weight = n * share;
        if !self.any_size() {
            let delta = (y[1] - x[1]) + (y[2] - x[2]);
            let (mut high, low) = two_sum(x[1], x[2] + delta * share);
            if self.results == (Results::Normalizer { infinite: true }) {
                high = (x[1].is_inf() | y[1].is_inf()).select(x[1] + y[1], high);
            }
            let spread = x[3] + y[3] + delta * delta * weight;
            return smallvec![count, pick(high, 1), pick(low, 2), pick(spread, 3)];
        }
        // Half the difference of two numbers is representable; at the ends of the range the
        // rounding error of their sum is negligible.
        let half = (y[1] * 0.5 - x[1] * 0.5) + (y[2] - x[2]) * 0.5;
        let (high, low) = two_sum(x[1], x[2] + half * (share + share));
        let low = (low.is_nan() | low.is_inf()).select(low.like(0.0), low);
        // An infinite element makes the mean infinite, whatever follows.
        let high = (x[1].is_inf() | y[1].is_inf()).select(x[1] + y[1], high);
        let square = |scale: f64, i: usize| {
            let distance = half * scale;
            pick(x[i] + y[i] + distance * distance * weight, i)
        };
        let Scales { large, small, .. } = Scales::of(self.scalar);
        let squares = [square(2.0, 3), square(2f64.powi(large), 4), square(2f64.powi(small), 5)];
        smallvec![count, pick(high, 1), pick(low, 2), squares[0], squares[1], squares[2]]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        match self.results {
            Results::Variance { root, mean } => {
                let divisor = x[0] - s.numbers[0];
                let mut results: Values = smallvec![self.variance(x, divisor.max(0.0), root)];
                if mean {
                    let nothing = s.b.float(self.scalar, f64::NAN);
                    results.push(x[0].gt(0.0).select(x[1], nothing));
                }
                results
            }
            Results::Normalizer { .. } => {
                let variance = x[3] / x[0];
                smallvec![x[1], math::rsqrt(variance + s.numbers[0]), variance]
            }
        }
    }
}

/// `a + b`, rounded, and the rounding error (Knuth, The Art of Computer Programming, volume 2,
/// 4.2.2).
fn two_sum<'b>(a: Value<'b>, b: Value<'b>) -> (Value<'b>, Value<'b>) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F64] {
            let scalar = dtype.compute();
            let results = Results::Variance { root: true, mean: true };
            validate(&Moments { scalar, results }, &[dtype], &[dtype; 2], &[dtype]);
            for infinite in [false, true] {
                let results = Results::Normalizer { infinite };
                validate(&Moments { scalar, results }, &[dtype], &[dtype; 3], &[dtype]);
            }
        }
    }
}
