//! The kernel that applies the rotations of [`block_pair`](super::block_pair): an invocation takes
//! a row of a pair of blocks.

use crate::linear_algebra::block_pair::{Blocks, columns};
use crate::linear_algebra::element::{
    Element, ElementVar, InputElements, LocalElements, OutputElements, SharedElements,
};
use crate::linear_algebra::jacobi::pair;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Rows of a workgroup.
pub const ROWS: u32 = 128;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RotateColumns {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub RotateColumns as s => RotateColumnsArguments, RotateColumnsParameters {
        /// `[batch, rows, n]`
        x: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        /// As [`block_pair`](super::block_pair) writes them.
        turns: InputElements = s.dtype,
        places: Input = DType::I32,
        rotated: Input = DType::I32,
        batch: U32,
        rows: U32,
        n: U32,
        /// Columns of a block, and blocks.
        width: U32,
        blocks: U32,
        round: U32,
        /// Tiles of rows.
        tiles: U32,
    }
}

impl KernelSpec for RotateColumns {
    fn name(&self) -> &'static str {
        "jacobi_rotate_columns"
    }

    fn workgroup(&self) -> [u32; 3] {
        [ROWS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RotateColumnsParameters<'b>) {
        let dtype = self.dtype;
        let most = columns(dtype);
        let nothing = || Element::constant(b, dtype, 0.0);
        let pairs = (p.blocks + 1) / 2;
        let (matrix, tile) = matrices::own_tile(b, p.batch, pairs * p.tiles);
        let own = tile / p.tiles;
        let local = b.local_id(0);
        let row = tile % p.tiles * ROWS + local;
        let slot = (matrix * pairs + own).cast(self.index);
        b.if_(p.rotated.load(slot).eq(0), || b.return_());
        let (turns, places) = (SharedElements::shared(b, dtype, most * most), b.shared(ScalarType::U32, 1, most));
        let blocks = Blocks { pair: pair(p.blocks, p.round, own), width: p.width, n: p.n };
        let columns = p.width * 2;
        for e in 0..most * most / ROWS {
            let element = local + e * ROWS;
            let (from, to) = (element / most, element % most);
            let value = ElementVar::var(b, nothing());
            b.if_(from.lt(columns) & to.lt(columns), || value.set(p.turns.load(blocks.number(slot, from, to))));
            turns.store(element, value.get());
        }
        b.if_(local.lt(columns), || {
            places.store(local, p.places.load(blocks.place(slot, local)).cast(ScalarType::U32));
        });
        b.barrier();
        let at = |column: Value<'b>| p.strides.at(matrix, row, column);
        b.if_(row.lt(p.rows), || {
            let before = LocalElements::local(b, dtype, most);
            let values: Vec<ElementVar> = (0..most)
                .map(|c| {
                    let (column, value) = (blocks.column(b.u32(c)), ElementVar::var(b, nothing()));
                    b.if_(column.lt(p.n), || value.set(p.x.load(at(column))));
                    before.set(b.u32(c), value.get());
                    value
                })
                .collect();
            b.for_(0, columns, 1, |c| {
                let column = blocks.column(c);
                b.if_(column.lt(p.n), || {
                    let change = values
                        .iter()
                        .zip(0..)
                        .fold(nothing(), |sum, (value, i)| sum + value.get() * turns.load(c + i * most));
                    p.x.store(at(column), before.get(places.load(c)) + change);
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
            accepted(&RotateColumns { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&RotateColumns { dtype, index: ScalarType::U64 }.build());
        }
    }
}
