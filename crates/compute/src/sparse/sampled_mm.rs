//! Elements of the product of two dense matrices at the positions of a sparse pattern.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sparse::compressed_mm::{is_below, multiply_add, widest};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::{self, linear_id};
use dml_kernel::{Builder, DType, ScalarType};

/// The number of accesses that load a row of `a` and a row of `b`, both contiguous and not empty.
pub fn accesses(a: &View, b: &View) -> i64 {
    a.sizes[1] / i64::from(widest(a.dtype, a.sizes[1], &[a.data, b.data]))
}

/// Element `e` of `out` (`[entries]`) is the product of row `rows[e]` of `a` (`[m, k]`) and row
/// `columns[e]` of `b` (`[n, k]`). Everything is contiguous and not empty; `a`, `b` and `out` have
/// one dtype, and `rows` and `columns` another one, int32 or int64.
pub fn sampled_product(cx: &Context, rows: &View, columns: &View, a: &View, b: &View, out: &View) -> Result<()> {
    let (wide, chunks) = (widest(a.dtype, a.sizes[1], &[a.data, b.data]), accesses(a, b));
    let entries = rows.numel();
    let index = index_type(a.numel().max(b.numel()).max(entries));
    let spec = SampledProduct { indices: rows.dtype, dtype: a.dtype, wide, index };
    let extent = [entries, chunks, a.sizes[0], b.sizes[0]];
    let arguments = SampledProductArguments { rows, columns, a, b, out, extent, fault: cx.fault_of_index() };
    let operations = multiply_adds(a.dtype, (entries * a.sizes[1]) as u64);
    cx.run_with_cost(&spec, &arguments, dense::groups(entries as u64), operations)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SampledProduct {
    indices: DType,
    dtype: DType,
    /// Elements loaded in one access (vector width).
    wide: u32,
    index: ScalarType,
}

parameters! {
    SampledProduct as s => SampledProductArguments, SampledProductParameters {
        rows: Input = s.indices,
        columns: Input = s.indices,
        a: Input = s.dtype,
        b: Input = s.dtype,
        out: Output = s.dtype,
        /// Number of entries, of chunks of a row, and of rows of `a` and of `b`.
        extent: [Index; 4] = s.index,
        fault: Fault,
    }
}

impl KernelSpec for SampledProduct {
    fn name(&self) -> &'static str {
        "sampled_mm"
    }

    fn write<'b>(&self, b: &'b Builder, p: SampledProductParameters<'b>) {
        let [entries, chunks, ..] = p.extent;
        let at = linear_id(b, self.index);
        b.if_(at.lt(entries), || {
            let (row, column) = (p.rows.load(at), p.columns.load(at));
            let row_known = is_below(b, row, p.extent[2], &p.fault);
            let column_known = is_below(b, column, p.extent[3], &p.fault);
            b.if_(row_known & column_known, || {
                let first = |i: dml_kernel::Value<'b>| i.cast(self.index) * chunks;
                let (row, column) = (first(row), first(column));
                let sum = b.var(b.constant_of(self.dtype.compute(), 0.0));
                b.for_(b.int(self.index, 0), chunks, 1, |chunk| {
                    let left = p.a.load_chunk(row + chunk, self.wide);
                    let right = p.b.load_chunk(column + chunk, self.wide);
                    for (x, y) in left.into_iter().zip(right) {
                        sum.set(multiply_add(x, y, sum.get()));
                    }
                });
                p.out.store(at, sum.get());
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, indices, wide, index) in [
            (DType::F32, DType::I64, 4, ScalarType::U32),
            (DType::F64, DType::I32, 1, ScalarType::U64),
            (DType::F16, DType::I64, 8, ScalarType::U32),
            (DType::BF16, DType::I64, 1, ScalarType::U32),
            (DType::I32, DType::I64, 2, ScalarType::U32),
        ] {
            accepted(&SampledProduct { indices, dtype, wide, index }.build());
        }
    }
}
