//! The kernel that solves triangular systems of few rows for many right sides: an invocation holds
//! a column of them in registers.
//!
//! Rows that are known leave the registers, which move up by one, so that their numbers are
//! constants in a loop of which every turn is the same code. No invocation waits for another but
//! where a block of the triangle comes to shared memory. Rows are counted from the one that is
//! known first: in an upper triangle from the last one up.

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::tile::{Place, Tile};
use crate::linear_algebra::triangular::Triangle;
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Rows of systems that one launch solves: as many as are not faster in two with a product between
/// them.
pub fn most_rows(dtype: DType) -> i64 {
    i64::from(2 * matrices::block_rows(dtype))
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
    /// What of `t` counts.
    pub triangle: Triangle,
    /// The conjugate of `t` counts.
    pub conjugate: bool,
    /// Rows that an invocation holds at once, and columns of a workgroup.
    pub side: u32,
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
        /// Tiles of columns.
        tiles: U32,
    }
}

/// Rows of a matrix that an invocation holds at once.
#[derive(Copy, Clone)]
struct Held<'b> {
    /// The first one in the matrix.
    from: Value<'b>,
    count: Value<'b>,
}

impl Columns {
    /// Those of block `block` in the order in which they become known.
    fn held<'b>(&self, n: Value<'b>, block: Value<'b>) -> Held<'b> {
        let before = block * self.side;
        let count = (n - before).min(self.side);
        Held { from: if self.triangle.upper { n - before - count } else { before }, count }
    }

    /// Which of them is known at which place, and the other way round. What is beyond them stays
    /// where it is.
    fn order<'b>(&self, held: Held<'b>, row: Value<'b>) -> Value<'b> {
        if self.triangle.upper { row.lt(held.count).select(held.count - 1 - row, row) } else { row }
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
        let (matrix, tile) = matrices::own_tile(b, p.batch, p.tiles);
        let own = b.local_id(0);
        let first_column = tile * side;
        let columns = (p.k - first_column).min(side);
        let counted = |offset| if self.conjugate { p.t.load(offset).conjugate() } else { p.t.load(offset) };
        let x_place = |held: Held<'b>| Place {
            strides: p.x_strides,
            matrix,
            from: [held.from, first_column],
            size: [held.count, columns],
        };
        let t_place = |rows: Held<'b>, columns: Held<'b>| Place {
            strides: p.t_strides,
            matrix,
            from: [rows.from, columns.from],
            size: [rows.count, columns.count],
        };
        let x = Tile::new(b, dtype, side, 1);
        // Columns stand one after another.
        let t = SharedElements::shared(b, dtype, side * side);
        let read_x = |held: Held<'b>| {
            x.read(
                &x_place(held),
                |offset| p.x.load(offset),
                |row, column, value| {
                    x.store(self.order(held, row), column, value);
                },
            );
        };
        let nothing = Element::constant(b, dtype, 0.0);
        let sums: Vec<ElementVar> = (0..side).map(|_| ElementVar::var(b, nothing)).collect();
        b.for_(0, (p.n + (side - 1)) / side, 1, |block| {
            let rows = self.held(p.n, block);
            b.barrier();
            read_x(rows);
            b.barrier();
            for (row, sum) in sums.iter().enumerate() {
                sum.set(x.load(b.u32(row as u32), own));
            }
            // What the rows known before make of these.
            b.for_(0, block, 1, |known| {
                let known = self.held(p.n, known);
                b.barrier();
                read_x(known);
                x.read(&t_place(rows, known), counted, |row, column, value| {
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
            // The block on the diagonal: of each column what is below the diagonal from the first
            // place on, the diagonal at the last one. Of the last column nothing is below, and its
            // first place tells whether quotients are products with reciprocals.
            let (diagonal, flag) = (own * side + (side - 1), b.u32((side - 1) * side));
            b.barrier();
            b.if_(own.eq(0), || t.store(flag, nothing));
            x.read(&t_place(rows, rows), counted, |row, column, value| {
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
            // Each invocation writes the elements that it reads later: no other one's writes are
            // visible to it.
            x.write(
                &x_place(rows),
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
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, triangle, conjugate, side) in [
            (DType::F32, ScalarType::U32, Triangle::UNIT_LOWER, false, 32),
            (DType::F64, ScalarType::U64, Triangle::UPPER, false, 32),
            (DType::C64, ScalarType::U32, Triangle::LOWER, true, 8),
            (DType::C128, ScalarType::U64, Triangle::UNIT_UPPER, false, 16),
        ] {
            accepted(&Columns { dtype, index, triangle, conjugate, side }.build());
        }
    }
}
