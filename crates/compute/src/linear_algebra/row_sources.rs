//! Kernels that apply many row exchanges in parallel: one finds the source of each row, the other
//! one gathers rows.

use crate::linear_algebra::element::{InputElements, OutputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Rows of a workgroup that gathers.
pub const ROWS: u32 = 64;

/// Columns of a workgroup that gathers.
pub const COLUMNS: u32 = 8;

/// The row that was at `now` before the rows `row` and `other` were exchanged.
pub fn exchanged<'b>(now: Value<'b>, row: Value<'b>, other: Value<'b>) -> Value<'b> {
    now.eq(row).select(other, now.eq(other).select(row, now))
}

/// One invocation for each row, which it traces back through all exchanges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sources {
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The exchanges are applied in reverse order.
    pub reverse: bool,
}

parameters! {
    pub Sources as s => SourcesArguments, SourcesParameters {
        /// Contiguous, counted from 1.
        pivots: Input = DType::I32,
        /// `[batch, rows]`, contiguous, counted from 0.
        sources: Output = DType::I32,
        batch: U32,
        rows: U32,
        /// Index of the first pivot, which is also its row.
        first: U32,
        steps: U32,
        /// Number of pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for Sources {
    fn name(&self) -> &'static str {
        "sources_of_rows"
    }

    fn write<'b>(&self, b: &'b Builder, p: SourcesParameters<'b>) {
        let i = linear_id(b, self.index);
        let rows = p.rows.cast(self.index);
        b.if_(i.lt(p.batch.cast(self.index) * rows), || {
            let matrix = i / rows;
            let own = matrix * p.pivots_apart.cast(self.index);
            let at = b.var((i - matrix * rows).cast(ScalarType::U32));
            b.for_(0, p.steps, 1, |step| {
                // From the last exchange that is applied to the first one.
                let row = p.first + if self.reverse { step } else { p.steps - 1 - step };
                let other = p.pivots.load(own + row.cast(self.index)).cast(ScalarType::U32) - 1;
                at.set(exchanged(at.get(), row, other));
            });
            p.sources.store(i, at.get().cast(ScalarType::I32));
        });
    }
}

/// One invocation for each row of a tile of columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherRows {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub GatherRows as s => BringArguments, BringParameters {
        x: InputElements = s.dtype,
        out: OutputElements = s.dtype,
        sources: Input = DType::I32,
        x_strides: MatrixStrides = s.index,
        out_strides: MatrixStrides = s.index,
        batch: U32,
        rows: U32,
        columns: U32,
        /// Number of tiles of rows, and of tiles in both dimensions.
        row_tiles: U32,
        tiles: U32,
    }
}

impl KernelSpec for GatherRows {
    fn name(&self) -> &'static str {
        "bring_rows"
    }

    fn workgroup(&self) -> [u32; 3] {
        [ROWS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BringParameters<'b>) {
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let columns = tile / p.row_tiles;
        let row = (tile - columns * p.row_tiles) * ROWS + b.local_id(0);
        b.if_(row.lt(p.rows), || {
            let at = matrix.cast(self.index) * p.rows.cast(self.index) + row.cast(self.index);
            let source = p.sources.load(at).cast(ScalarType::U32);
            for i in 0..COLUMNS {
                let column = columns * COLUMNS + i;
                b.if_(column.lt(p.columns), || {
                    let value = p.x.load(p.x_strides.at(matrix, source, column));
                    p.out.store(p.out_strides.at(matrix, row, column), value);
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::C128, ScalarType::U64)] {
            accepted(&GatherRows { dtype, index }.build());
        }
        for (index, reverse) in [(ScalarType::U32, false), (ScalarType::U64, true)] {
            accepted(&Sources { index, reverse }.build());
        }
    }
}
