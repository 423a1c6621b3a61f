//! Kernels that sort eigenvalues and singular values, and the columns that belong to them.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{InputElements, OutputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Sorts `values`, `[batch, n]` contiguous, into `sorted`; returns the position of each value.
pub fn sort(cx: &Context, values: &View, sorted: &View, descending: bool) -> Result<View> {
    let ranks = cx.empty(DType::I32, &values.sizes)?;
    let (total, n) = (values.numel(), values.sizes[1] as u32);
    let spec = Rank { dtype: values.dtype, index: matrices::index_of(&[values]), descending };
    cx.run_threads(&spec, &RankArguments { values, sorted, ranks: &ranks, total, n }, total as u64)?;
    Ok(ranks)
}

/// Writes column `j` of `from` to column `permutation[j]` of `to`, of `[batch, m, n]`.
pub fn permute_columns(cx: &Context, from: &View, to: &View, permutation: &View) -> Result<()> {
    run_permutation(cx, from, to, permutation, false)
}

/// Writes column `permutation[j]` of `from` to column `j` of `to`: the inverse of
/// [`permute_columns`].
pub fn unpermute_columns(cx: &Context, from: &View, to: &View, permutation: &View) -> Result<()> {
    run_permutation(cx, from, to, permutation, true)
}

fn run_permutation(cx: &Context, from: &View, to: &View, permutation: &View, back: bool) -> Result<()> {
    let (total, rows, columns) = (from.numel(), from.sizes[1] as u32, from.sizes[2] as u32);
    let spec = Permute { dtype: from.dtype, index: matrices::index_of(&[from, to]), back };
    let arguments =
        PermuteArguments { from, to, permutation, from_strides: from, to_strides: to, total, rows, columns };
    cx.run_threads(&spec, &arguments, total as u64)
}

/// Ranks: each invocation counts how many values come before one value. Equal values keep their
/// order; NaN comes last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rank {
    dtype: DType,
    index: ScalarType,
    descending: bool,
}

parameters! {
    Rank as s => RankArguments, RankParameters {
        values: Input = s.dtype,
        sorted: Output = s.dtype,
        ranks: Output = DType::I32,
        total: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Rank {
    fn name(&self) -> &'static str {
        "rank_of_values"
    }

    fn write<'b>(&self, b: &'b Builder, p: RankParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.total), || {
            let first = i / p.n.cast(self.index) * p.n.cast(self.index);
            let value = p.values.load(i);
            let before = b.var(b.u32(0));
            b.for_(0, p.n, 1, |j| {
                let at = first + j.cast(self.index);
                let other = p.values.load(at);
                let ahead = if self.descending { other.gt(value) } else { other.lt(value) };
                let same = other.eq(value) | (other.is_nan() & value.is_nan());
                let comes = ahead | (value.is_nan() & !other.is_nan()) | (same & at.lt(i));
                before.set(before.get() + comes.cast(ScalarType::U32));
            });
            p.sorted.store(first + before.get().cast(self.index), value);
            p.ranks.store(i, before.get().cast(ScalarType::I32));
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Permute {
    dtype: DType,
    index: ScalarType,
    back: bool,
}

parameters! {
    Permute as s => PermuteArguments, PermuteParameters {
        from: InputElements = s.dtype,
        to: OutputElements = s.dtype,
        permutation: Input = DType::I32,
        from_strides: MatrixStrides = s.index,
        to_strides: MatrixStrides = s.index,
        total: Index = s.index,
        rows: U32,
        columns: U32,
    }
}

impl KernelSpec for Permute {
    fn name(&self) -> &'static str {
        "arrange_columns"
    }

    fn write<'b>(&self, b: &'b Builder, p: PermuteParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.total), || {
            let line = i / p.rows.cast(self.index);
            let row = (i - line * p.rows.cast(self.index)).cast(ScalarType::U32);
            let matrix = (line / p.columns.cast(self.index)).cast(ScalarType::U32);
            let column = (line % p.columns.cast(self.index)).cast(ScalarType::U32);
            let permuted = p.permutation.load(line).cast(ScalarType::U32);
            let (from, to) = if self.back { (permuted, column) } else { (column, permuted) };
            p.to.store(p.to_strides.at(matrix, row, to), p.from.load(p.from_strides.at(matrix, row, from)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&Rank { dtype, index, descending: dtype == DType::F32 }.build());
            accepted(&Permute { dtype, index, back: dtype == DType::F32 }.build());
        }
        for (dtype, index) in [(DType::C64, ScalarType::U32), (DType::C128, ScalarType::U64)] {
            accepted(&Permute { dtype, index, back: false }.build());
        }
    }
}
