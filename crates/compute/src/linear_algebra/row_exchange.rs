//! The kernel that applies row exchanges: one invocation for each column.

use crate::linear_algebra::element::OutputElements;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType};

/// Columns of a workgroup.
pub const COLUMNS: u32 = 64;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The exchanges are applied in reverse order.
    pub reverse: bool,
}

parameters! {
    pub Exchange as s => ExchangeArguments, ExchangeParameters {
        x: OutputElements = s.dtype,
        pivots: Input = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        columns: U32,
        /// Number of tiles of columns.
        tiles: U32,
        /// Index of the first pivot, which is also its row.
        first: U32,
        steps: U32,
        /// Number of pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for Exchange {
    fn name(&self) -> &'static str {
        "exchange_rows"
    }

    fn workgroup(&self) -> [u32; 3] {
        [COLUMNS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ExchangeParameters<'b>) {
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let column = tile * COLUMNS + b.local_id(0);
        let own = matrix.cast(self.index) * p.pivots_apart.cast(self.index);
        b.if_(column.lt(p.columns), || {
            b.for_(0, p.steps, 1, |step| {
                let row = p.first + if self.reverse { p.steps - 1 - step } else { step };
                let other = p.pivots.load(own + row.cast(self.index)).cast(ScalarType::U32) - 1;
                b.if_(other.ne(row), || {
                    let [here, there] = [row, other].map(|row| p.strides.at(matrix, row, column));
                    let (x, y) = (p.x.load(here), p.x.load(there));
                    p.x.store(here, y);
                    p.x.store(there, x);
                });
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
        for dtype in [DType::F32, DType::C64] {
            accepted(&Exchange { dtype, index: ScalarType::U32, reverse: false }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&Exchange { dtype, index: ScalarType::U64, reverse: true }.build());
        }
    }
}
