//! RMS normalisation: by the root of the mean square over the last dimensions (B. Zhang and R.
//! Sennrich, "Root mean square layer normalization", NeurIPS 2019).

use crate::reduction::fold::{Fold, Scope, Values};
use dml_kernel::{DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Accumulates squares; yields `1 / sqrt(sum / numbers[0] + numbers[1])`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeanSquare(pub ScalarType);

impl Fold for MeanSquare {
    fn name(&self) -> &'static str {
        "mean_square"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.0]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.0, 0.0)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0].cast(self.0);
        smallvec![x * x]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![math::rsqrt(x[0] / s.numbers[0] + s.numbers[1])]
    }
}

/// The smallest `eps` for which `1 + eps` differs, which is what no `eps` means.
pub fn default_eps(dtype: DType) -> f64 {
    if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        validate(&MeanSquare(ScalarType::F32), &[DType::BF16], &[DType::F32], &[DType::F32; 2]);
    }
}
