//! Chosen elements of the product of two dense matrices: those of a sparse pattern.

use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sparse::compressed_mm::{is_below, multiply_add};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SampledProduct {
    pub indices: DType,
    pub dtype: DType,
    /// Elements that are loaded at once.
    pub wide: u32,
    pub index: ScalarType,
}

parameters! {
    pub SampledProduct as s => SampledProductArguments, SampledProductParameters {
        rows: Input = s.indices,
        columns: Input = s.indices,
        a: Input = s.dtype,
        b: Input = s.dtype,
        out: Output = s.dtype,
        /// Entries, chunks of a row, rows of `a` and of `b`.
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
