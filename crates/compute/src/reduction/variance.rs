//! Variance and standard deviation, with the mean if asked for.
//!
//! Means and sums of squared deviations of two groups are joined by Chan, Golub and LeVeque,
//! "Updating formulae and a pairwise algorithm for computing sample variances" (1979): no
//! cancellation, whatever the mean. Where the result may be of any size the squares are summed at
//! three scales, of which the one is taken that neither overflowed nor vanished, after J. L. Blue,
//! "A portable Fortran program to find the Euclidean norm of a vector" (1978).

use crate::reduction::fold::{Fold, Scope, Values};
use dml_kernel::{ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Accumulates the count, the mean as the sum of two floats, and the sum of squared deviations from
/// it. The mean's second float keeps the digits that a mean far from zero would cost the
/// deviations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moments {
    /// The type of the accumulators.
    pub scalar: ScalarType,
    /// What becomes of them.
    pub results: Results,
}

/// The results of [`Moments`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Results {
    /// The variance (or its root), with the mean if asked for. `numbers[0]` is the correction of
    /// the count.
    Spread {
        /// The standard deviation.
        root: bool,
        /// The mean too.
        mean: bool,
    },
    /// What normalisation takes: the mean, `1 / sqrt(variance + numbers[0])`, the variance; none of
    /// them corrected.
    Normalizer {
        /// Whether an infinite element makes the mean infinite, as a sum would; else the mean is
        /// NaN, as the variance is.
        infinite: bool,
    },
}

/// Powers of two that deviations are halved and multiplied by before they are squared, where the
/// sum of the squares themselves is too large, or too small.
struct Scales {
    large: i32,
    small: i32,
    /// The sums of plain squares that are trusted are below and above these powers.
    trusted: (i32, i32),
}

impl Scales {
    fn of(scalar: ScalarType) -> Scales {
        if scalar == ScalarType::F64 {
            Scales { large: -540, small: 500, trusted: (-900, 900) }
        } else {
            Scales { large: -80, small: 60, trusted: (-90, 100) }
        }
    }
}

impl Moments {
    /// Whether squares are summed at three scales.
    fn any_size(&self) -> bool {
        matches!(self.results, Results::Spread { .. })
    }

    /// The variance, or its root, of the accumulators and the corrected count.
    fn spread<'b>(&self, x: &[Value<'b>], divisor: Value<'b>, root: bool) -> Value<'b> {
        let Scales { large, small, trusted: (low, high) } = Scales::of(self.scalar);
        let is_large = !x[3].lt(2f64.powi(high));
        let is_small = x[3].lt(2f64.powi(low));
        let sum = is_large.select(x[4], is_small.select(x[5], x[3]));
        let power = |by: i32| {
            let of = |scale: i32| x[3].like(2f64.powi((1 - scale) * by));
            is_large.select(of(large), is_small.select(of(small), 1.0))
        };
        let variance = sum / divisor;
        // Its scale is a square, which may be beyond the range.
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

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); if self.any_size() { 6 } else { 4 }]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [zero, one] = [0.0, 1.0].map(|x| s.b.float(self.scalar, x));
        let x = elements[0].cast(self.scalar);
        let mut values: Values = smallvec![zero; if self.any_size() { 6 } else { 4 }];
        (values[0], values[1]) = (one, x);
        // Nothing is a finite distance away from an infinite element.
        for sum in values.iter_mut().skip(3) {
            *sum = x.is_finite().select(zero, x.like(f64::NAN));
        }
        values
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let (n, k) = (x[0], y[0]);
        let count = n + k;
        let share = k / count.max(1.0);
        // Where one side is empty, the other one stays as it is.
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
        // Half the distance of two numbers is a number; at the ends of the range their sum has no
        // rest to speak of.
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

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        match self.results {
            Results::Spread { root, mean } => {
                let divisor = x[0] - s.numbers[0];
                let mut results: Values = smallvec![self.spread(x, divisor.max(0.0), root)];
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

/// `a + b`, rounded, and what rounding left (Knuth, The Art of Computer Programming, volume 2,
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
            let results = Results::Spread { root: true, mean: true };
            validate(&Moments { scalar, results }, &[dtype], &[dtype; 2], &[dtype]);
            for infinite in [false, true] {
                let results = Results::Normalizer { infinite };
                validate(&Moments { scalar, results }, &[dtype], &[dtype; 3], &[dtype]);
            }
        }
    }
}
