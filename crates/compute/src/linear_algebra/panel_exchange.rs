//! The kernel that applies a panel's row exchanges to all columns outside of the panel.
//!
//! An invocation finds the source of the row that ends up at one position, so that all rows are
//! read in parallel and then written in parallel, however many successive exchanges there are.

use crate::linear_algebra::element::{OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::row_sources::exchanged;
use crate::primitives::kernel::{Input, KernelSpec};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType};

/// Columns of a workgroup.
pub const COLUMNS: u32 = 8;

/// Maximum exchanges of a panel.
pub const MAX_EXCHANGES: u32 = 32;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PanelExchange {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub PanelExchange as s => PanelExchangeArguments, PanelExchangeParameters {
        x: OutputElements = s.dtype,
        pivots: Input = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        /// Number of columns whose rows are exchanged.
        columns: U32,
        /// Number of tiles of columns.
        tiles: U32,
        /// Columns `gap..gap + width` are skipped.
        gap: U32,
        width: U32,
        /// Index of the first pivot, which is also its row.
        first: U32,
        steps: U32,
        /// Number of pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for PanelExchange {
    fn name(&self) -> &'static str {
        "exchange_rows_of_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [2 * MAX_EXCHANGES, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PanelExchangeParameters<'b>) {
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let local = b.local_id(0);
        let pivots = b.shared(ScalarType::U32, 1, MAX_EXCHANGES);
        // Rows are staged in shared memory, so that all reads come before all writes.
        let rows = SharedElements::shared(b, self.dtype, 2 * MAX_EXCHANGES * COLUMNS);
        b.if_(local.lt(p.steps), || {
            let at = matrix.cast(self.index) * p.pivots_apart.cast(self.index) + (p.first + local).cast(self.index);
            pivots.store(local, p.pivots.load(at).cast(ScalarType::U32) - 1);
        });
        b.barrier();
        // The rows of the panel's steps, then the rows that they were exchanged with, some of which
        // may repeat.
        let (step, last) = (local & (MAX_EXCHANGES - 1), p.first + p.steps);
        let counts = step.lt(p.steps);
        let to = b.var(p.first + local);
        b.if_(local.ge(MAX_EXCHANGES) & counts, || to.set(pivots.load(step)));
        let to = to.get();
        let from = b.var(to);
        b.for_(0, p.steps, 1, |i| {
            let step = p.steps - 1 - i;
            from.set(exchanged(from.get(), p.first + step, pivots.load(step)));
        });
        let from = from.get();
        let moves = counts & from.ne(to) & (local.lt(MAX_EXCHANGES) | to.ge(last));
        let column = |i: u32| {
            let column = tile * COLUMNS + i;
            (column.lt(p.columns), column.ge(p.gap).select(column + p.width, column))
        };
        b.if_(moves, || {
            for i in 0..COLUMNS {
                let (exists, column) = column(i);
                b.if_(exists, || {
                    rows.store(local + i * (2 * MAX_EXCHANGES), p.x.load(p.strides.at(matrix, from, column)));
                });
            }
        });
        b.barrier();
        b.if_(moves, || {
            for i in 0..COLUMNS {
                let (exists, column) = column(i);
                b.if_(exists, || {
                    p.x.store(p.strides.at(matrix, to, column), rows.load(local + i * (2 * MAX_EXCHANGES)));
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
        for (dtype, index) in
            [(DType::F32, ScalarType::U32), (DType::C64, ScalarType::U32), (DType::C128, ScalarType::U64)]
        {
            accepted(&PanelExchange { dtype, index }.build());
        }
    }
}
