//! The kernel that makes some columns of a Cholesky factor: of a block on the diagonal, and of all
//! that is below it.
//!
//! An invocation holds a row in registers. What a step does to the rows of the block it does to
//! those below as well: so every workgroup factors the block for itself, beside as many rows below
//! it, and no system is left to solve. Columns that are done leave the registers, as in
//! [`cholesky_rows`](super::cholesky_rows).

use crate::linear_algebra::element::{Element, ElementVar, OutputElements};
use crate::linear_algebra::line::Line;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Columns of a panel, which are the rows of its block on the diagonal: as many registers as every
/// GPU has.
pub fn columns(dtype: DType) -> u32 {
    match dtype.bytes() {
        4 => 64,
        8 => 32,
        _ => 16,
    }
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Panel {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub Panel as s => PanelArguments, PanelParameters {
        /// The panel, from the diagonal down, `[batch, m, n]`. What is below the block is written.
        a: OutputElements = s.dtype,
        /// The lower triangle of the block's factor, `[batch, n, n]`: the block itself is read by
        /// all workgroups.
        block: OutputElements = s.dtype,
        /// One a matrix: 0, or the order of the first leading minor that is not positive-definite,
        /// in which case nothing is done.
        before: Input = DType::I32,
        /// The same with this block.
        info: Output = DType::I32,
        a_strides: MatrixStrides = s.index,
        block_strides: MatrixStrides = s.index,
        batch: U32,
        m: U32,
        /// [`columns`], or fewer where nothing is below.
        n: U32,
        /// The first row in the whole matrix.
        first: U32,
        /// As many workgroups of a matrix as it has times [`columns`] rows below the block, but at
        /// least one.
        tiles: U32,
    }
}

impl KernelSpec for Panel {
    fn name(&self) -> &'static str {
        "cholesky_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [2 * columns(self.dtype), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PanelParameters<'b>) {
        let (dtype, rows) = (self.dtype, columns(self.dtype));
        let (matrix, tile) = matrices::own_tile(b, p.batch, p.tiles);
        let local = b.local_id(0);
        let in_block = local.lt(rows);
        let row = in_block.select(local, local + tile * rows);
        let writes_block = in_block & tile.eq(0) & row.lt(p.n);
        let writes_below = !in_block & row.lt(p.m);
        let of_panel = |column| p.a_strides.at(matrix, row, column);
        let of_block = |column| p.block_strides.at(matrix, row, column);
        let nothing = Element::constant(b, dtype, 0.0);
        let held: Vec<ElementVar> = (0..rows)
            .map(|column| {
                let at = p.a_strides.at(matrix, row.min(p.m - 1), b.u32(column).min(p.n - 1));
                ElementVar::var(b, p.a.load(at))
            })
            .collect();
        let told_pivot = b.shared(dtype.compute(), 1, 1);
        // What the rows of the block make of a step, from the one on whose turn it is: what is
        // further on than there are rows means nothing.
        let told = Line::new(b, dtype, rows);
        let failed = b.var(p.before.load(matrix).cast(ScalarType::U32));
        let diagonal = b.var(nothing.real());
        let step = (rows / 2).max(8);
        for start in (0..rows).step_by(step as usize) {
            let width = rows - start;
            b.for_(start, p.n.min(start + step), 1, |j| {
                let own = local.eq(j);
                b.if_(own, || told_pivot.store(0, held[0].get().real()));
                b.barrier();
                let pivot = told_pivot.load(0);
                b.if_(failed.get().eq(0) & !pivot.is_above_zero(), || failed.set(p.first + j + 1));
                let going = failed.get().eq(0);
                b.if_(own, || diagonal.set(pivot));
                let below = held[0].get();
                let factor = Element::select(going, below.times(math::rsqrt(pivot)), below);
                b.if_(in_block & local.ge(j), || told.store(local - j, factor));
                b.if_(writes_block & row.gt(j), || p.block.store(of_block(j), factor));
                b.if_(writes_below, || p.a.store(of_panel(j), factor));
                b.barrier();
                b.if_else(
                    going,
                    || {
                        let told = told.load(b.u32(0), width);
                        for k in 1..width as usize {
                            held[k - 1].set(held[k].get() - factor * told[k].conjugate());
                        }
                    },
                    || (1..width as usize).for_each(|k| held[k - 1].set(held[k].get())),
                );
            });
        }
        let failed = failed.get();
        b.if_(writes_block, || {
            // Rows from the failure on keep what they had on the diagonal.
            let done = failed.eq(0) | (p.first + row + 1).lt(failed);
            let root = done.select(math::sqrt(diagonal.get()), diagonal.get());
            p.block.store(of_block(row), Element::of_real(dtype, root));
        });
        b.if_(writes_block & row.eq(0), || p.info.store(matrix, failed.cast(ScalarType::I32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&Panel { dtype, index }.build());
            accepted(&Panel { dtype: dtype.complex(), index }.build());
        }
    }
}
