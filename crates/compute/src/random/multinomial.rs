//! Samples from rows of weights.
//!
//! Without replacement the samples are the largest values of `weight / exponential` (P. Efraimidis
//! and P. Spirakis, "Weighted random sampling with a reservoir", 2006); with replacement the
//! running sums of the weights are searched.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input as Operand};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::random::functions::MULTINOMIAL_SCORE;
use crate::sorting::key;
use crate::view::{Dims, View};
use dml_engine::interface::{U32, U64};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// `scores = weights / scores`: replaces exponential samples by scores whose order gives samples
/// without replacement. Both have one shape.
pub fn scores(cx: &Context, weights: &View, scores: &View) -> Result<()> {
    let inputs = [Operand::Tensor(weights.clone()), Operand::Tensor(scores.clone())];
    kernel::run(cx, &MULTINOMIAL_SCORE, &[scores], &inputs, scores.dtype)
}

/// Samples with replacement: for each of `noise` (uniform in `[0, 1)`) the category whose part of
/// the running `sums` it falls into. `sums` are `[rows, n]` or `[n]`, contiguous; `out` is int64,
/// `[rows, samples]` or `[samples]`, of any strides; `noise` has its shape and is contiguous.
pub fn search(cx: &Context, sums: &View, noise: &View, out: &View) -> Result<()> {
    let mut strides: Dims = out.strides.clone();
    if strides.len() == 1 {
        strides.insert(0, 0);
    }
    let arguments = Arguments {
        sums,
        noise,
        out,
        n: sums.size(-1) as u32,
        count: out.numel() as u64,
        samples: out.size(-1) as u64,
        row_stride: strides[0] as u64,
        stride: strides[1] as u64,
    };
    cx.run_threads(&SearchCumulativeSum { dtype: sums.dtype }, &arguments, out.numel() as u64)
}

/// The kernel that searches running sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SearchCumulativeSum {
    dtype: DType,
}

parameters! {
    SearchCumulativeSum as s => Arguments, Parameters {
        sums: Input = s.dtype,
        noise: Input = s.dtype,
        out: Output = DType::I64,
        /// Number of categories.
        n: U32,
        /// Number of elements of the result, and of a row of it.
        count: U64,
        samples: U64,
        row_stride: U64,
        stride: U64,
    }
}

impl KernelSpec for SearchCumulativeSum {
    fn name(&self) -> &'static str {
        "multinomial"
    }

    /// The first category whose running sum is above a uniform fraction of the total: its weight is
    /// not 0.
    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, ScalarType::U64);
        b.if_(i.lt(p.count), || {
            let row = i / p.samples;
            let first = row * p.n.cast(ScalarType::U64);
            let whole = p.sums.load(first + (p.n - 1).cast(ScalarType::U64));
            let wanted = p.noise.load(i) * whole;
            let category = key::partition_point(p.n, |c| p.sums.load(first + c.cast(ScalarType::U64)).le(wanted));
            // Rounding may give the total itself, which no running sum exceeds.
            let last = key::partition_point(p.n, |c| p.sums.load(first + c.cast(ScalarType::U64)).lt(whole));
            p.out.store(row * p.row_stride + (i - row * p.samples) * p.stride, category.min(last));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F64] {
            crate::primitives::validate::accepted(&SearchCumulativeSum { dtype }.build());
        }
    }
}
