//! RMS normalisation: by the root of the mean square over the last dimensions (B. Zhang and R.
//! Sennrich, "Root mean square layer normalization", NeurIPS 2019).

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// `scale = 1 / sqrt(mean(input^2) + eps)` of each row of `input` (`[rows, n]`). `scale` is
/// `[rows]`, in the accumulator's dtype.
pub fn inverse_roots(cx: &Context, input: &View, eps: f64, scale: &View) -> Result<()> {
    let dtype = accumulator(input.dtype);
    let numbers = [(dtype, Number::Int(input.sizes[1])), (dtype, Number::Double(eps))];
    let axes = Axes::of_dims(&[1], 2, false);
    let operands = Reduction { inputs: &[input], outs: &[scale], axes, tables: &[], numbers: &numbers };
    reduce(cx, &MeanSquare(dtype.compute()), &operands)
}

/// Accumulates squares; the result is `1 / sqrt(sum / numbers[0] + numbers[1])`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MeanSquare(ScalarType);

impl Fold for MeanSquare {
    fn name(&self) -> &'static str {
        "mean_square"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.0]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.0, 0.0)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0].cast(self.0);
        smallvec![x * x]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![math::rsqrt(x[0] / s.numbers[0] + s.numbers[1])]
    }
}

/// The default `eps`: the smallest number whose sum with 1 differs from 1.
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
