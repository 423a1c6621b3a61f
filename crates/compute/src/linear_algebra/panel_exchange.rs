//! The kernel that exchanges rows as the pivots of a panel say, in all columns but the panel's own.
//!
//! An invocation finds where the row comes from that ends at one place, so that rows are read at
//! once and written at once, however many exchanges there are one after another.

use crate::linear_algebra::element::{OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::row_sources::exchanged;
use crate::primitives::kernel::{Input, KernelSpec};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType};

/// Columns of a workgroup.
pub const COLUMNS: u32 = 8;

/// Most exchanges of a panel.
pub const MOST: u32 = 32;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PanelExchange {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub PanelExchange as s => PanelExchangeArguments, PanelExchangeParameters {
        x: OutputElements = s.dtype,
        pivots: Input = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        /// Those whose rows are exchanged.
        columns: U32,
        /// Tiles of them.
        tiles: U32,
        /// Columns `gap..gap + width` are not among them.
        gap: U32,
        width: U32,
        /// The first pivot, and the row that it is of.
        first: U32,
        steps: U32,
        /// Pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for PanelExchange {
    fn name(&self) -> &'static str {
        "exchange_rows_of_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [2 * MOST, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PanelExchangeParameters<'b>) {
        let (matrix, tile) = matrices::own_tile(b, p.batch, p.tiles);
        let local = b.local_id(0);
        let pivots = b.shared(ScalarType::U32, 1, MOST);
        // Values are on their way in shared memory: what was read is there before anything is
        // written.
        let rows = SharedElements::shared(b, self.dtype, 2 * MOST * COLUMNS);
        b.if_(local.lt(p.steps), || {
            let at = matrix.cast(self.index) * p.pivots_apart.cast(self.index) + (p.first + local).cast(self.index);
            pivots.store(local, p.pivots.load(at).cast(ScalarType::U32) - 1);
        });
        b.barrier();
        // The rows of the panel's steps, then the others that they were exchanged with, some of
        // them perhaps twice.
        let (step, last) = (local & (MOST - 1), p.first + p.steps);
        let counts = step.lt(p.steps);
        let to = b.var(p.first + local);
        b.if_(local.ge(MOST) & counts, || to.set(pivots.load(step)));
        let to = to.get();
        let from = b.var(to);
        b.for_(0, p.steps, 1, |i| {
            let step = p.steps - 1 - i;
            from.set(exchanged(from.get(), p.first + step, pivots.load(step)));
        });
        let from = from.get();
        let moves = counts & from.ne(to) & (local.lt(MOST) | to.ge(last));
        let column = |i: u32| {
            let column = tile * COLUMNS + i;
            (column.lt(p.columns), column.ge(p.gap).select(column + p.width, column))
        };
        b.if_(moves, || {
            for i in 0..COLUMNS {
                let (exists, column) = column(i);
                b.if_(exists, || {
                    rows.store(local + i * (2 * MOST), p.x.load(p.strides.at(matrix, from, column)));
                });
            }
        });
        b.barrier();
        b.if_(moves, || {
            for i in 0..COLUMNS {
                let (exists, column) = column(i);
                b.if_(exists, || {
                    p.x.store(p.strides.at(matrix, to, column), rows.load(local + i * (2 * MOST)));
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
