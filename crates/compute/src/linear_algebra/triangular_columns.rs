//! The kernel that solves triangular systems of few rows for many right-hand sides: an invocation
//! holds a column of them in registers.
//!
//! Solved rows leave the registers, and the others move up by one, so that register numbers are
//! constants in a loop whose iterations all run the same code. Invocations synchronise only where a
//! block of the triangle is loaded to shared memory. Rows are counted in the order in which they
//! are solved: in an upper triangle from the last one up.

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::tile::{Tile, TilePosition};
use crate::linear_algebra::triangular::Triangle;
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum rows of systems for one launch: with more, two launches with a product between them are
/// faster.
pub fn most_rows(dtype: DType) -> i64 {
    i64::from(2 * matrices::block_rows(dtype))
}

/// Rows that an invocation holds at a time, and its loads in flight, where registers are few. For
/// each row compilers keep a factor, its address and a copy in addition: seen in `make gpus`.
pub const FOR_FEW_REGISTERS: (u32, u32) = (8, 1);

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The triangle of `t`.
    pub triangle: Triangle,
    /// The conjugate of `t` is used.
    pub conjugate: bool,
    /// Rows that an invocation holds at a time, and columns of a workgroup.
    pub side: u32,
    /// Loads of an invocation that are issued before their results are used.
    pub loads: u32,
}

parameters! {
    pub Columns as s => ColumnsArguments, ColumnsParameters {
        t: InputElements = s.dtype,
        x: OutputElements = s.dtype,
        t_strides: MatrixStrides = s.index,
        x_strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
        k: U32,
        /// Number of tiles of columns.
        tiles: U32,
    }
}

/// A block of rows that an invocation holds at a time.
#[derive(Copy, Clone)]
struct RowBlock<'b> {
    /// Index in the matrix of the block's first row.
    from: Value<'b>,
    count: Value<'b>,
}

impl Columns {
    /// Block number `block` in solution order.
    fn row_block<'b>(&self, n: Value<'b>, block: Value<'b>) -> RowBlock<'b> {
        let before = block * self.side;
        let count = (n - before).min(self.side);
        RowBlock { from: if self.triangle.upper { n - before - count } else { before }, count }
    }

    /// Converts between a row's index in the block and its position in solution order. Indices
    /// beyond the block are unchanged.
    fn order<'b>(&self, rows: RowBlock<'b>, row: Value<'b>) -> Value<'b> {
        if self.triangle.upper { row.lt(rows.count).select(rows.count - 1 - row, row) } else { row }
    }
}

impl KernelSpec for Columns {
    fn name(&self) -> &'static str {
        "triangular_columns"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.side, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ColumnsParameters<'b>) {
        let (dtype, side, unit) = (self.dtype, self.side, self.triangle.unit);
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let own = b.local_id(0);
        let first_column = tile * side;
        let columns = (p.k - first_column).min(side);
        let counted = |offset| if self.conjugate { p.t.load(offset).conjugate() } else { p.t.load(offset) };
        let x_position = |rows: RowBlock<'b>| TilePosition {
            strides: p.x_strides,
            matrix,
            from: [rows.from, first_column],
            size: [rows.count, columns],
        };
        let t_position = |rows: RowBlock<'b>, columns: RowBlock<'b>| TilePosition {
            strides: p.t_strides,
            matrix,
            from: [rows.from, columns.from],
            size: [rows.count, columns.count],
        };
        let x = Tile::new(b, dtype, side, 1).with_loads_in_flight(self.loads);
        // The block of `t` in column-major order.
        let t = SharedElements::shared(b, dtype, side * side);
        let read_x = |rows: RowBlock<'b>| {
            x.read(
                &x_position(rows),
                |offset| p.x.load(offset),
                |row, column, value| {
                    x.store(self.order(rows, row), column, value);
                },
            );
        };
        let nothing = Element::constant(b, dtype, 0.0);
        let sums: Vec<ElementVar> = (0..side).map(|_| ElementVar::var(b, nothing)).collect();
        b.for_(0, (p.n + (side - 1)) / side, 1, |block| {
            let rows = self.row_block(p.n, block);
            b.barrier();
            read_x(rows);
            b.barrier();
            for (row, sum) in sums.iter().enumerate() {
                sum.set(x.load(b.u32(row as u32), own));
            }
            // Subtracts the contribution of the rows that were solved before.
            b.for_(0, block, 1, |known| {
                let known = self.row_block(p.n, known);
                b.barrier();
                read_x(known);
                x.read(&t_position(rows, known), counted, |row, column, value| {
                    t.store(self.order(known, column) * side + self.order(rows, row), value);
                });
                b.barrier();
                b.for_(0, b.u32(side), 1, |j| {
                    let factor = x.load(j, own);
                    for (row, sum) in sums.iter().enumerate() {
                        sum.set(sum.get().minus_product(t.load(j * side + row as u32), factor));
                    }
                });
            });
            // The diagonal block, by column: first the elements below the diagonal, and in the last
            // entry the diagonal. The last column has no elements below, so its first entry is a
            // flag: whether to divide rather than multiply by reciprocals.
            let (diagonal, flag) = (own * side + (side - 1), b.u32((side - 1) * side));
            b.barrier();
            b.if_(own.eq(0), || t.store(flag, nothing));
            x.read(&t_position(rows, rows), counted, |row, column, value| {
                let (row, column) = (self.order(rows, row), self.order(rows, column));
                b.if_(row.gt(column), || t.store(column * side + (row - column - 1), value));
                if !unit {
                    b.if_(row.eq(column), || t.store(column * side + (side - 1), value));
                }
            });
            b.barrier();
            let reciprocals = if unit {
                None
            } else {
                let divisor = t.load(diagonal);
                let size = divisor.size();
                let ordinary = size.gt(1e-30) & size.lt(1e30);
                b.if_(own.lt(rows.count) & !ordinary, || t.store(flag, nothing.like(1.0)));
                b.barrier();
                let reciprocals = t.load(flag).is_zero();
                b.if_(reciprocals, || t.store(diagonal, divisor.like(1.0) / divisor));
                b.barrier();
                Some(reciprocals)
            };
            let half = side / 2;
            for start in [0, half] {
                b.for_(start, rows.count.min(start + half), 1, |j| {
                    let known = ElementVar::var(b, sums[0].get());
                    if let Some(reciprocals) = reciprocals {
                        let divisor = t.load(j * side + (side - 1));
                        b.if_else(
                            reciprocals,
                            || known.set(known.get() * divisor),
                            || known.set(known.get() / divisor),
                        );
                    }
                    let known = known.get();
                    x.store(j, own, known);
                    for k in 1..side - start {
                        let factor = t.load(j * side + (k - 1));
                        sums[k as usize - 1].set(sums[k as usize].get().minus_product(factor, known));
                    }
                });
            }
            b.barrier();
            // Each invocation writes the elements that it reads later, since the writes of others
            // are not visible to it.
            x.write(
                &x_position(rows),
                b.bool(true),
                |row, column| x.load(self.order(rows, row), column),
                |offset, element| p.x.store(offset, element),
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::tile::LOADS_IN_FLIGHT;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, triangle, conjugate, side) in [
            (DType::F32, ScalarType::U32, Triangle::UNIT_LOWER, false, 32),
            (DType::F64, ScalarType::U64, Triangle::UPPER, false, 32),
            (DType::C64, ScalarType::U32, Triangle::LOWER, true, 8),
            (DType::C128, ScalarType::U64, Triangle::UNIT_UPPER, false, 16),
        ] {
            let loads = if side == 32 { LOADS_IN_FLIGHT } else { 1 };
            accepted(&Columns { dtype, index, triangle, conjugate, side, loads }.build());
        }
    }
}
