//! The kernel that reduces a few columns to triangular form by Householder reflections.
//!
//! A workgroup processes a matrix, and each invocation every `THREADS`-th row, which no other
//! invocation reads or writes: only sums, and the diagonal's row, pass through shared memory.
//! Columns are scaled by their largest element, so that no square overflows.

use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{ElementSum, THREADS, larger};
use crate::primitives::kernel::KernelSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Maximum columns of a panel.
pub const WIDTH: u32 = 16;

/// Loop iterations of an invocation for matrices of `rows` rows.
pub fn loop_iterations(rows: i64) -> i64 {
    i64::from(WIDTH) * (2 * rows / i64::from(THREADS) + 64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Panel {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
}

parameters! {
    pub Panel as s => PanelArguments, PanelParameters {
        /// The panel, from the diagonal down.
        a: OutputElements = s.dtype,
        /// The factors of the reflections `I - tau v v^H`; their adjoints reduce the matrix to a
        /// triangle with a real diagonal.
        tau: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        batch: U32,
        rows: U32,
        columns: U32,
        /// Number of reflections: the smaller of rows and columns.
        steps: U32,
        /// Index of the first reflection in `tau`, and number of reflections of a whole matrix.
        first: U32,
        tau_apart: U32,
    }
}

impl KernelSpec for Panel {
    fn name(&self) -> &'static str {
        "qr_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PanelParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let at = |row, column| p.strides.at(matrix, row, column);
        let zero = b.float(compute, 0.0);
        let joined = ElementSum::new(b, self.dtype, WIDTH);
        let top = SharedElements::shared(b, self.dtype, WIDTH);
        let largest = b.var(zero);
        let nothing = Element::of_real(self.dtype, zero);
        let sums: Vec<ElementVar> = (0..WIDTH).map(|_| ElementVar::var(b, nothing)).collect();
        b.for_(local, p.rows, THREADS, |row| {
            largest.set(larger(largest.get(), p.a.load(at(row, b.u32(0))).size()));
        });
        b.for_(0, p.steps, 1, |j| {
            b.if_((j & (THREADS - 1)).eq(local), || {
                b.for_(0, p.columns, 1, |column| top.store(column, p.a.load(at(j, column))));
            });
            let scale = joined.largest(largest);
            let empty = scale.is_zero();
            let divisor = empty.select(scale.like(1.0), scale);
            // The inner products of the column below the diagonal with all columns to its right,
            // and at index 0 with itself.
            sums.iter().for_each(|sum| sum.set(nothing));
            b.for_(local, p.rows, THREADS, |row| {
                b.if_(row.gt(j), || {
                    let x = p.a.load(at(row, j)).over(divisor);
                    let own = x.conjugate();
                    sums[0].set(sums[0].get() + own * x);
                    for column in 1..WIDTH {
                        let here = b.u32(column);
                        b.if_(here.gt(j) & here.lt(p.columns), || {
                            let sum = sums[column as usize];
                            sum.set(sum.get() + own * p.a.load(at(row, here)));
                        });
                    }
                });
            });
            joined.add(&sums);
            let square = joined.sum(0).real();
            let alpha = top.load(j).over(divisor);
            let norm = math::sqrt(alpha.square() + square);
            let beta = alpha.real().is_below_zero().select(norm, -norm);
            // Everything below the diagonal is zero, and the diagonal is real: no reflection.
            let flat = square.is_zero();
            let flat = alpha.imaginary().map_or(flat, |im| flat & im.is_zero());
            let one = alpha.like(1.0);
            let safe = flat.select(one.real(), beta);
            let tau = Element::select(flat, nothing, (alpha.of_same_kind(beta) - alpha).over(safe));
            let apart = Element::select(flat, one, alpha - alpha.of_same_kind(beta));
            b.if_(local.eq(0), || {
                let to = matrix.cast(self.index) * p.tau_apart.cast(self.index) + (p.first + j).cast(self.index);
                p.tau.store(to, tau);
            });
            largest.set(zero);
            b.for_(local, p.rows, THREADS, |row| {
                let below = row.gt(j);
                b.if_(row.ge(j) & !flat, || {
                    let factor = ElementVar::var(b, one);
                    b.if_else(
                        below,
                        || {
                            factor.set(p.a.load(at(row, j)).over(divisor) / apart);
                            p.a.store(at(row, j), factor.get());
                        },
                        || p.a.store(at(row, j), alpha.of_same_kind(beta * scale)),
                    );
                    let factor = factor.get();
                    for column in 1..WIDTH {
                        let column = b.u32(column);
                        b.if_(column.gt(j) & column.lt(p.columns), || {
                            let along = top.load(column) + joined.sum(column) / apart.conjugate();
                            let product = tau.conjugate() * along;
                            p.a.store(at(row, column), p.a.load(at(row, column)) - factor * product);
                        });
                    }
                });
                b.if_(below & (j + 1).lt(p.columns), || {
                    largest.set(larger(largest.get(), p.a.load(at(row, j + 1)).size()));
                });
            });
            b.barrier();
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
            accepted(&Panel { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&Panel { dtype, index: ScalarType::U64 }.build());
        }
    }
}
