//! The kernel that decomposes matrices of few rows and columns with partial pivoting: an invocation
//! holds a row in registers.
//!
//! Rows do not move: each knows its index after the exchanges, and only the pivot's row is
//! broadcast. Completed columns leave the registers, and the others move up by one, so that
//! register numbers are constants in a loop whose iterations all run the same code. Where registers
//! do not hold a row, it stays in shared memory, and the results are the same.

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::shared_vectors::SharedVectors;
use crate::linear_algebra::tile::{Tile, TilePosition};
use crate::primitives::kernel::{KernelSpec, Output};
use crate::primitives::registers::{Kept, Loads};
use dml_engine::interface::U32;
use dml_engine::{RegisterFile, parameters};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Shared, Value, Var};

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Maximum rows, and columns, of a matrix: see [`matrices::rows_for`].
    pub rows: u32,
    /// Rows are exchanged.
    pub pivot: bool,
    /// The conjugate of `a` is decomposed.
    pub conjugate: bool,
    /// Invocations hold their rows in registers, and not in shared memory.
    pub in_registers: bool,
}

/// Whether registers hold rows of this length: an invocation keeps its own, and about half of the
/// pivot's at a time.
pub fn fit_registers(dtype: DType, rows: u32, registers: Option<RegisterFile>) -> bool {
    let kept = Kept { bytes: dtype.bytes() as u32, elements: rows + rows / 2, loaded: (1, Loads::Elements) };
    kept.fits(registers, rows.max(matrices::MIN_WORKGROUP))
}

parameters! {
    pub Rows as s => RowsArguments, RowsParameters {
        a: InputElements = s.dtype,
        lu: OutputElements = s.dtype,
        /// Contiguous.
        pivots: Output = DType::I32,
        info: Output = DType::I32,
        a_strides: MatrixStrides = s.index,
        lu_strides: MatrixStrides = s.index,
        batch: U32,
        m: U32,
        n: U32,
        /// Number of pivots, `min(m, n)`.
        steps: U32,
    }
}

impl KernelSpec for Rows {
    fn name(&self) -> &'static str {
        "lu_rows"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.rows.max(matrices::MIN_WORKGROUP), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RowsParameters<'b>) {
        let (dtype, rows, together) = (self.dtype, self.rows, matrices::matrices_per_workgroup(self.rows));
        let (matrix, exists) = matrices::invocation_matrix(b, p.batch, rows);
        let local = b.local_id(0);
        let row = local & (rows - 1);
        // Beginning of this matrix's part of arrays with one entry for each invocation.
        let (here, zero) = (local - row, b.u32(0));
        let size = [p.m, p.n];
        let [from, to] =
            [p.a_strides, p.lu_strides].map(|strides| TilePosition { strides, matrix, from: [zero, zero], size });
        let tile = Tile::new(b, dtype, rows, together);
        let tile = if self.in_registers { tile } else { tile.with_copied(p.m.max(p.n)) };
        tile.fill(&from, |offset| if self.conjugate { p.a.load(offset).conjugate() } else { p.a.load(offset) });
        let sizes = SharedVectors::new(b, dtype.real(), rows * together);
        // First the row index of each step's pivot; in the end the source of each row.
        let row_indices = b.shared(ScalarType::U32, 1, rows * together);
        row_indices.store(local, b.u32(u32::MAX));
        let worker = Worker { spec: self, b, p, matrix, exists, row, here, tile, sizes, row_indices };
        let [position, failed] =
            if self.in_registers { worker.with_rows_in_registers() } else { worker.with_rows_in_shared_memory() };
        let p = &worker.p;
        b.barrier();
        b.if_(row.lt(p.m), || row_indices.store(here + position, row));
        b.barrier();
        tile.write(
            &to,
            exists,
            |position, column| tile.load(row_indices.load(here + position), column),
            |offset, element| p.lu.store(offset, element),
        );
        b.if_(exists & row.eq(0), || p.info.store(matrix, failed.cast(ScalarType::I32)));
    }
}

/// One invocation, which has a row.
struct Worker<'b, 's> {
    spec: &'s Rows,
    b: &'b Builder,
    p: RowsParameters<'b>,
    /// Index of the matrix, and whether it exists.
    matrix: Value<'b>,
    exists: Value<'b>,
    /// Index of the row before exchanges.
    row: Value<'b>,
    /// Beginning of this matrix's part of arrays with one entry for each invocation.
    here: Value<'b>,
    tile: Tile<'b>,
    sizes: SharedVectors<'b>,
    row_indices: Shared<'b>,
}

impl<'b> Worker<'b, '_> {
    /// The index of the pivot's row of step `j`, from the first remaining element of this
    /// invocation's row, which is at `position`. Two barriers.
    fn pivot(&self, j: Value<'b>, position: Var<'b>, element: impl Fn() -> Element<'b>) -> Value<'b> {
        let &Worker { b, row, here, sizes, row_indices, .. } = self;
        if !self.spec.pivot {
            return j;
        }
        let (local, none) = (b.local_id(0), b.u32(u32::MAX));
        // Never NaN: if all candidates are NaN, rows are not exchanged.
        let size = element().size();
        let counts = row.lt(self.p.m) & position.get().ge(j) & !size.is_nan();
        let size = counts.select(size, size.like(-1.0));
        sizes.store(local, Element::Real(size));
        b.barrier();
        let larger = |x: Value<'b>, y: Value<'b>| y.gt(x).select(y, x);
        let largest = if self.spec.in_registers {
            let all = sizes.load(here, self.spec.rows).into_iter().map(Element::real);
            all.reduce(larger).unwrap_or(size)
        } else {
            let largest = b.var(size);
            b.for_(here, here + self.spec.rows, 4, |first| {
                let all = sizes.load(first, 4).into_iter().map(Element::real);
                largest.set(all.fold(largest.get(), larger));
            });
            largest.get()
        };
        b.if_(counts & size.eq(largest), || {
            row_indices.atomic(Atomic::Min, here + j, position.get());
        });
        b.barrier();
        let found = row_indices.load(here + j);
        found.eq(none).select(j, found)
    }

    /// Writes the pivot of step `j`.
    fn store_pivot(&self, j: Value<'b>, pivot: Value<'b>) {
        let p = &self.p;
        self.b.if_(self.exists, || {
            let index = self.spec.index;
            let own = self.matrix.cast(index) * p.steps.cast(index);
            p.pivots.store(own + j.cast(index), (pivot + 1).cast(ScalarType::I32));
        });
    }

    /// Decomposes the matrix in registers and writes it to the tile. Returns the index of the row
    /// after exchanges, and the first step whose pivot is zero, counted from 1.
    fn with_rows_in_registers(&self) -> [Value<'b>; 2] {
        let (&Worker { spec, b, ref p, row, here, tile, .. }, zero) = (self, self.b.u32(0));
        let rows = spec.rows;
        let told = SharedVectors::new(b, spec.dtype, rows * matrices::matrices_per_workgroup(rows));
        b.barrier();
        let elements: Vec<ElementVar> =
            (0..rows).map(|column| ElementVar::var(b, tile.load(row, b.u32(column)))).collect();
        let (position, failed) = (b.var(row), b.var(zero));
        let step = (rows / 2).max(8);
        for start in (0..rows).step_by(step as usize) {
            let width = (rows - start) as usize;
            let move_up = || (1..width).for_each(|k| elements[k - 1].set(elements[k].get()));
            let last = p.steps.min(start + step);
            b.for_(start, last, 1, |j| {
                let pivot = self.pivot(j, position, || elements[0].get());
                let chosen = position.get().eq(pivot);
                b.if_(chosen, || {
                    let row: Vec<Element> = elements[..width].iter().map(|element| element.get()).collect();
                    told.store_all(here, &row);
                    self.store_pivot(j, pivot);
                });
                let moved = position.get().eq(j).select(pivot, position.get());
                position.set(chosen.select(j, moved));
                b.barrier();
                let told = told.load(here, width as u32);
                let divisor = told[0];
                let singular = divisor.is_zero();
                b.if_(singular & failed.get().eq(0), || failed.set(j + 1));
                b.if_else(
                    position.get().gt(j),
                    || {
                        let factor = ElementVar::var(b, elements[0].get());
                        b.if_(!singular, || factor.set(factor.get() / divisor));
                        let factor = factor.get();
                        tile.store(row, j, factor);
                        for k in 1..width {
                            elements[k - 1].set(elements[k].get() - factor * told[k]);
                        }
                    },
                    || {
                        tile.store(row, j, elements[0].get());
                        move_up();
                    },
                );
                // Without the search's barriers, this one separates reads of this row from writes
                // of the next.
                if !spec.pivot {
                    b.barrier();
                }
            });
            // Columns to the right of the last pivot's.
            b.for_(last.max(start), p.n.min(start + step), 1, |j| {
                tile.store(row, j, elements[0].get());
                move_up();
            });
        }
        [position.get(), failed.get()]
    }

    /// The same with rows in the tile.
    fn with_rows_in_shared_memory(&self) -> [Value<'b>; 2] {
        let (&Worker { spec, b, ref p, row, tile, .. }, zero) = (self, self.b.u32(0));
        let together = matrices::matrices_per_workgroup(spec.rows);
        // The tile's row with the step's pivot.
        let (told, own) = (b.shared(ScalarType::U32, 1, together), b.local_id(0) / spec.rows);
        b.barrier();
        let (position, failed) = (b.var(row), b.var(zero));
        b.for_(0, p.steps, 1, |j| {
            let pivot = self.pivot(j, position, || tile.load(row, j));
            let chosen = position.get().eq(pivot);
            b.if_(chosen, || {
                told.store(own, row);
                self.store_pivot(j, pivot);
            });
            let moved = position.get().eq(j).select(pivot, position.get());
            position.set(chosen.select(j, moved));
            b.barrier();
            let told = told.load(own);
            let divisor = tile.load(told, j);
            let singular = divisor.is_zero();
            b.if_(singular & failed.get().eq(0), || failed.set(j + 1));
            b.if_(position.get().gt(j), || {
                let factor = ElementVar::var(b, tile.load(row, j));
                b.if_(!singular, || factor.set(factor.get() / divisor));
                let factor = factor.get();
                tile.store(row, j, factor);
                b.for_(j + 1, p.n, 1, |k| {
                    tile.store(row, k, tile.load(row, k) - factor * tile.load(told, k));
                });
            });
            // As above.
            if !spec.pivot {
                b.barrier();
            }
        });
        [position.get(), failed.get()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, rows, pivot, conjugate) in [
            (DType::F32, ScalarType::U32, 32, true, false),
            (DType::F64, ScalarType::U64, 32, false, false),
            (DType::C64, ScalarType::U32, 8, true, true),
            (DType::C128, ScalarType::U64, 16, true, false),
        ] {
            for in_registers in [true, false] {
                accepted(&Rows { dtype, index, rows, pivot, conjugate, in_registers }.build());
            }
        }
    }
}
