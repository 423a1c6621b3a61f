//! The kernel that decomposes a few columns with partial pivoting.
//!
//! A workgroup processes a matrix, and each invocation every `GROUP`-th row, which no other
//! invocation reads or writes: so only the pivot's row and the one that it is exchanged with pass
//! through shared memory, and matrices may have any number of rows.

use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::MaxSearch;
use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType};

/// Maximum columns of a panel.
pub const WIDTH: u32 = 16;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Panel {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Rows are exchanged.
    pub pivot: bool,
}

parameters! {
    pub Panel as s => PanelArguments, PanelParameters {
        /// The panel, from the diagonal down.
        a: OutputElements = s.dtype,
        pivots: Output = DType::I32,
        info: Output = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        /// Number of rows, at least the number of columns.
        rows: U32,
        columns: U32,
        /// The panel's first row and column in the whole matrix.
        first: U32,
        /// Number of pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for Panel {
    fn name(&self) -> &'static str {
        "lu_panel"
    }

    fn write<'b>(&self, b: &'b Builder, p: PanelParameters<'b>) {
        let (dtype, compute) = (self.dtype, self.dtype.compute());
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let at = |row, column| p.strides.at(matrix, row, column);
        let [pivot_row, own_row] = [(); 2].map(|()| SharedElements::shared(b, dtype, WIDTH));
        let search = MaxSearch::new(b, compute, GROUP);
        let failed = b.var(p.info.load(matrix).cast(ScalarType::U32));
        // The largest element of the next column in this invocation's rows, and its row.
        let (largest, largest_row) = (b.var(b.float(compute, -1.0)), b.var(b.u32(0)));
        let consider = |row, value: Element<'b>| {
            let size = value.size();
            b.if_(size.gt(largest.get()), || {
                largest.set(size);
                largest_row.set(row);
            });
        };
        if self.pivot {
            b.for_(local, p.rows, GROUP, |row| consider(row, p.a.load(at(row, b.u32(0)))));
        }
        b.for_(0, p.columns, 1, |j| {
            // If all candidates are NaN, rows are not exchanged.
            let pivot = if self.pivot {
                let (size, row) = search.find(largest.get(), largest_row.get());
                size.lt(0.0).select(j, row)
            } else {
                j
            };
            let owns = |row: dml_kernel::Value<'b>| (row & (GROUP - 1)).eq(local);
            for (row, shared) in [(pivot, pivot_row), (j, own_row)] {
                b.if_(owns(row), || {
                    b.for_(0, p.columns, 1, |column| shared.store(column, p.a.load(at(row, column))));
                });
            }
            b.barrier();
            b.if_(pivot.ne(j), || {
                for (row, shared) in [(j, pivot_row), (pivot, own_row)] {
                    b.if_(owns(row), || {
                        b.for_(0, p.columns, 1, |column| p.a.store(at(row, column), shared.load(column)));
                    });
                }
            });
            let divisor = pivot_row.load(j);
            let zero = divisor.is_zero();
            b.if_(zero & failed.get().eq(0), || failed.set(p.first + j + 1));
            b.if_(local.eq(0), || {
                let to = matrix.cast(self.index) * p.pivots_apart.cast(self.index) + (p.first + j).cast(self.index);
                p.pivots.store(to, (p.first + pivot + 1).cast(ScalarType::I32));
            });
            largest.set(-1.0);
            b.for_(local, p.rows, GROUP, |row| {
                b.if_(row.gt(j), || {
                    let above = p.a.load(at(row, j));
                    let factor = ElementVar::var(b, above);
                    b.if_(!zero, || factor.set(above / divisor));
                    let factor = factor.get();
                    p.a.store(at(row, j), factor);
                    for column in 1..WIDTH {
                        let column = b.u32(column);
                        b.if_(column.gt(j) & column.lt(p.columns), || {
                            let value = p.a.load(at(row, column)) - factor * pivot_row.load(column);
                            p.a.store(at(row, column), value);
                            if self.pivot {
                                b.if_(column.eq(j + 1), || consider(row, value));
                            }
                        });
                    }
                });
            });
            // The shared rows have been read by all invocations.
            b.barrier();
        });
        b.if_(local.eq(0), || p.info.store(matrix, failed.get().cast(ScalarType::I32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::C64] {
            accepted(&Panel { dtype, index: ScalarType::U32, pivot: true }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&Panel { dtype, index: ScalarType::U64, pivot: false }.build());
        }
    }
}
