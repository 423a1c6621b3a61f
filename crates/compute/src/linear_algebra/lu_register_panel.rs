//! The kernel that decomposes a few columns with partial pivoting, with the whole panel in its
//! invocations' registers.
//!
//! A workgroup processes a matrix, and each invocation every `threads`-th row. Rows do not move:
//! each knows its index after the exchanges, so that memory is read once and written once, and only
//! the pivot's row is broadcast. Columns rotate through the registers, the next one always first,
//! so that register numbers are constants in a loop whose iterations all run the same code.

use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::register_panel::{Row, Shape, WorkgroupMax};
use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterPanel {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Rows are exchanged.
    pub pivot: bool,
    /// The panel that a workgroup holds.
    pub shape: Shape,
}

parameters! {
    pub RegisterPanel as s => RegisterPanelArguments, RegisterPanelParameters {
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

impl KernelSpec for RegisterPanel {
    fn name(&self) -> &'static str {
        "lu_held_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.shape.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RegisterPanelParameters<'b>) {
        let (dtype, Shape { threads, columns, .. }) = (self.dtype, self.shape);
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let nothing = Element::constant(b, dtype, 0.0);
        let search = WorkgroupMax::new(b, dtype.compute(), threads);
        // Row index of each step's pivot.
        let pivot_rows = b.shared(ScalarType::U32, 1, columns);
        let none = b.u32(u32::MAX);
        b.if_(local.lt(columns), || pivot_rows.store(local, none));
        // The broadcast pivot row, and the reciprocal of the pivot unless it is very small or
        // large.
        let told = SharedElements::shared(b, dtype, columns + 1);
        let rows = Row::all(b, dtype, &self.shape, p.rows, |row, column| {
            p.a.load(p.strides.at(matrix, row, column.min(p.columns - 1)))
        });
        let failed = b.var(p.info.load(matrix).cast(ScalarType::U32));
        b.barrier();
        let step = (columns / 2).max(4);
        for start in (0..columns).step_by(step as usize) {
            b.for_(start, p.columns.min(start + step), 1, |j| {
                let pivot = if self.pivot {
                    // Never NaN: if all candidates are NaN, rows are not exchanged.
                    let sizes: Vec<(Value, Value)> = rows
                        .iter()
                        .map(|row| {
                            let size = row.elements[0].get().size();
                            let counts = row.in_range & row.index.get().ge(j) & !size.is_nan();
                            (counts, counts.select(size, size.like(-1.0)))
                        })
                        .collect();
                    let own = sizes.iter().map(|&(_, size)| size).reduce(|x, y| y.gt(x).select(y, x));
                    let largest = search.largest(own.unwrap_or(nothing.real()));
                    for (row, (counts, size)) in rows.iter().zip(sizes) {
                        b.if_(counts & size.eq(largest), || {
                            pivot_rows.atomic(Atomic::Min, j, row.index.get());
                        });
                    }
                    b.barrier();
                    let found = pivot_rows.load(j);
                    found.eq(none).select(j, found)
                } else {
                    j
                };
                let ordinary = |pivot: Element<'b>| pivot.size().gt(1e-30) & pivot.size().lt(1e30);
                for row in &rows {
                    let chosen = row.index.get().eq(pivot);
                    b.if_(chosen, || {
                        for k in start..columns {
                            told.store(k - start, row.elements[(k - start) as usize].get());
                        }
                        let own = row.elements[0].get();
                        b.if_(ordinary(own), || told.store(columns, own.like(1.0) / own));
                    });
                    let moved = row.index.get().eq(j).select(pivot, row.index.get());
                    row.index.set(chosen.select(j, moved));
                }
                b.if_(local.eq(0), || {
                    let to = matrix.cast(self.index) * p.pivots_apart.cast(self.index) + (p.first + j).cast(self.index);
                    p.pivots.store(to, (p.first + pivot + 1).cast(ScalarType::I32));
                });
                b.barrier();
                let divisor = told.load(0);
                let reciprocal = told.load(columns);
                let singular = divisor.is_zero();
                b.if_(singular & failed.get().eq(0), || failed.set(p.first + j + 1));
                for row in &rows {
                    let first = row.elements[0].get();
                    b.if_else(
                        row.index.get().gt(j),
                        || {
                            let factor = ElementVar::var(b, first);
                            b.if_else(
                                ordinary(divisor),
                                || factor.set(first * reciprocal),
                                || b.if_(!singular, || factor.set(first / divisor)),
                            );
                            let factor = factor.get();
                            for k in 1..columns {
                                let mut next = row.elements[k as usize].get();
                                // Completed columns follow the `columns - j` others.
                                if k < columns - start {
                                    let updated = next - factor * told.load(k);
                                    let sure = k <= columns - start - step;
                                    next = if sure {
                                        updated
                                    } else {
                                        Element::select((j + k).lt(columns), updated, next)
                                    };
                                }
                                row.elements[k as usize - 1].set(next);
                            }
                            row.elements[columns as usize - 1].set(factor);
                        },
                        || row.rotate(first),
                    );
                }
                // Without the search's barriers, this one separates reads of this row from writes
                // of the next.
                if !self.pivot {
                    b.barrier();
                }
            });
        }
        Row::rotate_back(b, &rows, p.columns);
        for row in &rows {
            b.if_(row.in_range, || {
                for (column, element) in row.elements.iter().enumerate() {
                    let column = b.u32(column as u32);
                    b.if_(column.lt(p.columns), || {
                        p.a.store(p.strides.at(matrix, row.index.get(), column), element.get());
                    });
                }
            });
        }
        b.if_(local.eq(0), || p.info.store(matrix, failed.get().cast(ScalarType::I32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, pivot, rows) in [
            (DType::F32, ScalarType::U32, true, 50),
            (DType::F32, ScalarType::U32, true, 4096),
            (DType::C64, ScalarType::U32, true, 200),
            (DType::F64, ScalarType::U64, false, 2000),
            (DType::C128, ScalarType::U64, true, 1000),
        ] {
            let shape = Shape::of(dtype, rows, 1024).expect("held");
            accepted(&RegisterPanel { dtype, index, pivot, shape }.build());
        }
    }
}
