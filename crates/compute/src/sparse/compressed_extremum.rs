//! The largest or smallest products of compressed rows (CSR) and a dense matrix, where
//! [`compressed_mm`](super::compressed_mm) adds them up.

use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sparse::compressed_mm::{bounds, is_below};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extremum {
    pub offsets: DType,
    pub dtype: DType,
    pub largest: bool,
    /// The results hold what is extreme among the entries before.
    pub continued: bool,
    pub index: ScalarType,
}

parameters! {
    pub Extremum as s => ExtremumArguments, ExtremumParameters {
        offsets: Input = s.offsets,
        indices: Input = s.offsets,
        values: Input = s.dtype,
        dense: Input = s.dtype,
        out: Output = s.dtype,
        places: Output = DType::I64,
        /// Rows and columns of the result, rows of the dense matrix, entries.
        extent: [Index; 4] = s.index,
        /// The entries of each row that come before those of this launch, and how many it takes at
        /// most.
        part: [U32; 2],
        fault: Fault,
    }
}

impl KernelSpec for Extremum {
    fn name(&self) -> &'static str {
        "compressed_extremum"
    }

    fn write<'b>(&self, b: &'b Builder, p: ExtremumParameters<'b>) {
        let [rows, columns, height, entries] = p.extent;
        let at = linear_id(b, self.index);
        let row = at / columns;
        b.if_(row.lt(rows), || {
            let column = at - row * columns;
            let [first, end] = bounds(p.offsets, row, entries, p.part, self.index);
            let none = entries.cast(ScalarType::I64);
            let (best, place) = if self.continued {
                (b.var(p.out.load(at)), b.var(p.places.load(at)))
            } else {
                (b.var(b.constant_of(self.dtype.compute(), 0.0)), b.var(none))
            };
            b.for_(first, end, 1, |entry| {
                let given = p.indices.load(entry);
                let there = is_below(b, given, height, &p.fault);
                let from = there.select(given.cast(self.index), b.int(self.index, 0)) * columns + column;
                let x = p.values.load(entry) * p.dense.load(from);
                let beyond = if self.largest { x.gt(best.get()) } else { x.lt(best.get()) };
                let better = place.get().eq(none) | beyond | x.is_nan();
                best.set(better.select(x, best.get()));
                place.set(better.select(entry.cast(ScalarType::I64), place.get()));
            });
            p.out.store(at, best.get());
            p.places.store(at, place.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, offsets, largest, continued, index) in [
            (DType::F32, DType::I64, true, false, ScalarType::U32),
            (DType::F64, DType::I32, false, true, ScalarType::U64),
            (DType::F16, DType::I64, false, false, ScalarType::U32),
            (DType::BF16, DType::I32, true, true, ScalarType::U32),
        ] {
            accepted(&Extremum { offsets, dtype, largest, continued, index }.build());
        }
    }
}
