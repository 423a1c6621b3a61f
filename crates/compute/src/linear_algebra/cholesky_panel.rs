//! The kernel that computes a panel of columns of a Cholesky factor: the block on the diagonal, and
//! everything below it.
//!
//! An invocation holds a row in registers. A step does the same to the rows of the diagonal block
//! and to the rows below it: so every workgroup factors the block redundantly, together with as
//! many rows below it, and no triangular system is left to solve. Completed columns leave the
//! registers, as in [`cholesky_rows`](super::cholesky_rows).

use crate::linear_algebra::element::{Element, ElementVar, OutputElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::shared_vectors::SharedVectors;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Columns of a panel, which is also the number of rows of its diagonal block: as many as every
/// GPU's registers hold.
pub fn columns(dtype: DType) -> u32 {
    match dtype.bytes() {
        4 => 64,
        8 => 32,
        _ => 16,
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Panel {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// For adapters with few registers: a step's factors are loaded a few at a time.
    pub few_registers: bool,
}

parameters! {
    pub Panel as s => PanelArguments, PanelParameters {
        /// The panel, from the diagonal down, `[batch, m, n]`. The rows below the diagonal block
        /// are written.
        a: OutputElements = s.dtype,
        /// The lower triangle of the block's factor, `[batch, n, n]`. It is not written in place,
        /// since all workgroups read the block.
        block: OutputElements = s.dtype,
        /// For each matrix 0, or the order of the first leading minor that is not
        /// positive-definite, in which case nothing is done.
        before: Input = DType::I32,
        /// `before`, with the result of this panel.
        info: Output = DType::I32,
        a_strides: MatrixStrides = s.index,
        block_strides: MatrixStrides = s.index,
        batch: U32,
        m: U32,
        /// [`columns`], or fewer if there are no rows below.
        n: U32,
        /// The panel's first row in the whole matrix.
        first: U32,
        /// Workgroups of a matrix: one for each [`columns`] rows below the block, but at least one.
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
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let local = b.local_id(0);
        let in_block = local.lt(rows);
        let row = in_block.select(local, local + tile * rows);
        let writes_block = in_block & tile.eq(0) & row.lt(p.n);
        let writes_below = !in_block & row.lt(p.m);
        let of_panel = |column| p.a_strides.at(matrix, row, column);
        let of_block = |column| p.block_strides.at(matrix, row, column);
        let nothing = Element::constant(b, dtype, 0.0);
        let elements: Vec<ElementVar> = (0..rows)
            .map(|column| {
                let at = p.a_strides.at(matrix, row.min(p.m - 1), b.u32(column).min(p.n - 1));
                ElementVar::var(b, p.a.load(at))
            })
            .collect();
        let told_pivot = b.shared(dtype.compute(), 1, 1);
        // The factors of a step, broadcast to all rows, from the step's own row on. Entries past
        // the last row are ignored.
        let told = SharedVectors::new(b, dtype, rows);
        let failed = b.var(p.before.load(matrix).cast(ScalarType::U32));
        let diagonal = b.var(nothing.real());
        let step = (rows / 2).max(8);
        for start in (0..rows).step_by(step as usize) {
            let width = rows - start;
            b.for_(start, p.n.min(start + step), 1, |j| {
                let own = local.eq(j);
                b.if_(own, || told_pivot.store(0, elements[0].get().real()));
                b.barrier();
                let pivot = told_pivot.load(0);
                b.if_(failed.get().eq(0) & !pivot.is_above_zero(), || failed.set(p.first + j + 1));
                let going = failed.get().eq(0);
                b.if_(own, || diagonal.set(pivot));
                let below = elements[0].get();
                let factor = Element::select(going, below.times(math::rsqrt(pivot)), below);
                b.if_(in_block & local.ge(j), || told.store(local - j, factor));
                b.if_(writes_block & row.gt(j), || p.block.store(of_block(j), factor));
                b.if_(writes_below, || p.a.store(of_panel(j), factor));
                b.barrier();
                b.if_else(
                    going,
                    || {
                        let each = if self.few_registers { 4 } else { width };
                        for first in (0..width).step_by(each as usize) {
                            for (other, k) in told.load(b.u32(first), each).into_iter().zip(first as usize..) {
                                if k > 0 {
                                    elements[k - 1].set(elements[k].get() - factor * other.conjugate());
                                }
                            }
                        }
                    },
                    || (1..width as usize).for_each(|k| elements[k - 1].set(elements[k].get())),
                );
            });
        }
        let failed = failed.get();
        b.if_(writes_block, || {
            // From the failing row on, the diagonal is left as it was.
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
            for few_registers in [false, true] {
                accepted(&Panel { dtype, index, few_registers }.build());
                accepted(&Panel { dtype: dtype.complex(), index, few_registers }.build());
            }
        }
    }
}
