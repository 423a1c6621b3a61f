//! The kernel that computes the Cholesky factors of matrices of few rows: an invocation holds one
//! row in registers.
//!
//! Completed columns leave the registers, and the others move up by one, so that register numbers
//! are constants in a loop whose iterations all run the same code. Results above the diagonal are
//! meaningless and are not read.

use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::tile::{Tile, TilePosition};
use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Maximum rows of a matrix, up to [`matrices::block_rows`]: see [`matrices::rows_for`].
    pub rows: u32,
    /// The conjugate of `a` is decomposed.
    pub conjugate: bool,
}

parameters! {
    pub Rows as s => RowsArguments, RowsParameters {
        a: InputElements = s.dtype,
        /// The factor, with zeros above the diagonal.
        l: OutputElements = s.dtype,
        /// For each matrix 0, or the order of the first leading minor that is not
        /// positive-definite.
        info: Output = DType::I32,
        a_strides: MatrixStrides = s.index,
        l_strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Rows {
    fn name(&self) -> &'static str {
        "cholesky_rows"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.rows.max(matrices::MIN_WORKGROUP), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RowsParameters<'b>) {
        let (dtype, rows, together) = (self.dtype, self.rows, matrices::matrices_per_workgroup(self.rows));
        let (matrix, exists) = matrices::invocation_matrix(b, p.batch, rows);
        let local = b.local_id(0);
        let row = local & (rows - 1);
        let (here, zero) = (local >> rows.ilog2(), b.u32(0));
        let size = [p.n, p.n];
        let [from, to] =
            [p.a_strides, p.l_strides].map(|strides| TilePosition { strides, matrix, from: [zero, zero], size });
        let nothing = Element::constant(b, dtype, 0.0);
        let loaded = |offset| if self.conjugate { p.a.load(offset).conjugate() } else { p.a.load(offset) };
        let tile = Tile::new(b, dtype, rows, together);
        tile.fill(&from, loaded);
        b.barrier();
        let elements: Vec<ElementVar> =
            (0..rows).map(|column| ElementVar::var(b, tile.load(row, b.u32(column)))).collect();
        let pivots = SharedElements::shared(b, dtype.real(), together);
        // Twice the size, so that reads for columns beyond the last one are in range.
        let told = SharedElements::shared(b, dtype, 2 * rows * together);
        let own_told = here * (2 * rows);
        told.store(own_told + rows + row, nothing);
        let (failed, diagonal) = (b.var(zero), b.var(nothing.real()));
        let step = (rows / 2).max(8);
        for start in (0..rows).step_by(step as usize) {
            let width = rows - start;
            b.for_(start, p.n.min(start + step), 1, |j| {
                let own = row.eq(j);
                b.if_(own, || pivots.store(here, Element::Real(elements[0].get().real())));
                b.barrier();
                let pivot = pivots.load(here).real();
                b.if_(failed.get().eq(0) & !pivot.is_above_zero(), || failed.set(j + 1));
                let going = failed.get().eq(0);
                b.if_(own, || diagonal.set(pivot));
                let below = elements[0].get();
                let factor = Element::select(going, below.times(math::rsqrt(pivot)), below);
                told.store(own_told + row, factor);
                tile.store(row, j, Element::select(row.ge(j), factor, nothing));
                b.barrier();
                let next = own_told + j;
                b.if_else(
                    going,
                    || {
                        for k in 1..width as usize {
                            let other = told.load(next + k as u32).conjugate();
                            elements[k - 1].set(elements[k].get() - factor * other);
                        }
                    },
                    || (1..width as usize).for_each(|k| elements[k - 1].set(elements[k].get())),
                );
            });
        }
        let failed = failed.get();
        // From the failing row on, the diagonal is left as it was.
        let done = failed.eq(0) | (row + 1).lt(failed);
        let root = done.select(math::sqrt(diagonal.get()), diagonal.get());
        let root = Element::of_real(dtype, root);
        b.if_(row.lt(p.n), || tile.store(row, row, root));
        b.barrier();
        tile.write(&to, exists, |row, column| tile.load(row, column), |offset, element| p.l.store(offset, element));
        b.if_(exists & row.eq(0), || p.info.store(matrix, failed.cast(ScalarType::I32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, rows, conjugate) in [
            (DType::F32, ScalarType::U32, 32, false),
            (DType::F64, ScalarType::U64, 32, false),
            (DType::C64, ScalarType::U32, 8, true),
            (DType::C128, ScalarType::U64, 16, false),
        ] {
            accepted(&Rows { dtype, index, rows, conjugate }.build());
        }
    }
}
