//! Samples of rows of weights: multinomial.
//!
//! Without replacement the largest of `weight / exponential` win (P. Efraimidis and P. Spirakis,
//! "Weighted random sampling with a reservoir", 2006); with replacement the running sums of the
//! weights are searched.

use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key;
use dml_engine::interface::{U32, U64};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The kernel that searches running sums.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    pub dtype: DType,
}

parameters! {
    pub Search as s => Arguments, Parameters {
        sums: Input = s.dtype,
        noise: Input = s.dtype,
        out: Output = DType::I64,
        /// Categories.
        n: U32,
        /// Elements of the result, and of a row of it.
        count: U64,
        samples: U64,
        row_stride: U64,
        stride: U64,
    }
}

impl KernelSpec for Search {
    fn name(&self) -> &'static str {
        "multinomial"
    }

    /// The first category whose running sum is above a uniform part of the whole: its weight is
    /// not 0.
    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, ScalarType::U64);
        b.if_(i.lt(p.count), || {
            let row = i / p.samples;
            let first = row * p.n.cast(ScalarType::U64);
            let whole = p.sums.load(first + (p.n - 1).cast(ScalarType::U64));
            let wanted = p.noise.load(i) * whole;
            let category = key::partition_point(p.n, |c| p.sums.load(first + c.cast(ScalarType::U64)).le(wanted));
            // Rounding may reach the whole, beyond which there is none.
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
            crate::primitives::validate::accepted(&Search { dtype }.build());
        }
    }
}
