//! Maxima or minima of the products of compressed rows (CSR) and a dense matrix, which
//! [`compressed_mm`](super::compressed_mm) sums.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::segments;
use crate::sparse::compressed_mm::{bounds, is_below};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{groups, linear_id};
use dml_kernel::{Builder, DType, ScalarType};

/// Compressed rows and a dense matrix, contiguous.
pub struct Operands<'t> {
    /// The start of each row in the entries, and the end of the last one: `[rows + 1]`, int32 or
    /// int64.
    pub offsets: &'t View,
    /// The column of each entry: `[entries]`, in the dtype of `offsets`.
    pub indices: &'t View,
    /// The value of each entry: `[entries]`, floats.
    pub values: &'t View,
    /// `[columns, n]`, in the dtype of `values`.
    pub dense: &'t View,
}

/// Writes the `largest` or smallest of the products `values[e] * dense[indices[e], c]` of each row
/// to `out` (`[rows, n]`, not empty), and its entry `e` to `chosen_entries` (int64, of that shape);
/// for a row without entries 0 and the number of all entries. The first of equal products wins; of
/// NaNs, which are both largest and smallest, the last one.
pub fn extremum(cx: &Context, operands: &Operands, largest: bool, out: &View, chosen_entries: &View) -> Result<()> {
    let &Operands { offsets, indices, values, dense } = operands;
    let (dtype, entries, rows, n) = (dense.dtype, indices.numel(), out.sizes[0], out.sizes[1]);
    let index = index_type(out.numel().max(dense.numel()).max(entries));
    let mut continued = false;
    for part in segments::parts(cx, entries.max(1)) {
        let spec = Extremum { offsets: offsets.dtype, dtype, largest, continued, index };
        let taken = if dense.numel() == 0 { 0 } else { entries };
        let arguments = ExtremumArguments {
            offsets,
            indices,
            values,
            dense,
            out,
            chosen_entries,
            extent: [rows, n, dense.sizes[0], taken],
            part,
            fault: cx.fault_of_index(),
        };
        let operations = multiply_adds(dtype, (entries * n) as u64);
        cx.run_with_cost(&spec, &arguments, groups(out.numel() as u64), operations)?;
        continued = true;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extremum {
    offsets: DType,
    dtype: DType,
    largest: bool,
    /// The results hold the extrema of earlier entries.
    continued: bool,
    index: ScalarType,
}

parameters! {
    Extremum as s => ExtremumArguments, ExtremumParameters {
        offsets: Input = s.offsets,
        indices: Input = s.offsets,
        values: Input = s.dtype,
        dense: Input = s.dtype,
        out: Output = s.dtype,
        chosen_entries: Output = DType::I64,
        /// Number of rows and columns of the result, of rows of the dense matrix, and of entries.
        extent: [Index; 4] = s.index,
        /// For each row, the number of entries before those of this launch, and the maximum number
        /// in this launch.
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
            let (best, chosen_entry) = if self.continued {
                (b.var(p.out.load(at)), b.var(p.chosen_entries.load(at)))
            } else {
                (b.var(b.constant_of(self.dtype.compute(), 0.0)), b.var(none))
            };
            b.for_(first, end, 1, |entry| {
                let given = p.indices.load(entry);
                let there = is_below(b, given, height, &p.fault);
                let from = there.select(given.cast(self.index), b.int(self.index, 0)) * columns + column;
                let x = p.values.load(entry) * p.dense.load(from);
                let beyond = if self.largest { x.gt(best.get()) } else { x.lt(best.get()) };
                let better = chosen_entry.get().eq(none) | beyond | x.is_nan();
                best.set(better.select(x, best.get()));
                chosen_entry.set(better.select(entry.cast(ScalarType::I64), chosen_entry.get()));
            });
            p.out.store(at, best.get());
            p.chosen_entries.store(at, chosen_entry.get());
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
