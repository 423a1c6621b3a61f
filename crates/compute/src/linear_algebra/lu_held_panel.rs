//! The kernel that decomposes a few columns with partial pivoting, all of which its invocations
//! hold in registers.
//!
//! A workgroup takes a matrix, an invocation every so many of its rows. Rows stay where they are
//! and know their place among the exchanged ones, so that memory is read once and written once;
//! only the row of the pivot is told to all. Columns go round in the registers, the next one always
//! first, so that their numbers are constants in a loop of which every turn is the same code.

use crate::linear_algebra::element::{Element, ElementVar, OutputElements, SharedElements};
use crate::linear_algebra::held_panel::{Row, Search, Shape};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{KernelSpec, Output};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeldPanel {
    /// Of the matrices.
    pub dtype: DType,
    /// Type of offsets.
    pub index: ScalarType,
    /// Rows are exchanged.
    pub pivot: bool,
    /// What a workgroup holds.
    pub shape: Shape,
}

parameters! {
    pub HeldPanel as s => HeldPanelArguments, HeldPanelParameters {
        /// The panel, from the diagonal down.
        a: OutputElements = s.dtype,
        pivots: Output = DType::I32,
        info: Output = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        /// Not fewer than columns.
        rows: U32,
        columns: U32,
        /// The panel's first row and column in the whole matrix.
        first: U32,
        /// Pivots of a matrix.
        pivots_apart: U32,
    }
}

impl KernelSpec for HeldPanel {
    fn name(&self) -> &'static str {
        "lu_held_panel"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.shape.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: HeldPanelParameters<'b>) {
        let (dtype, Shape { threads, columns, .. }) = (self.dtype, self.shape);
        let (matrix, _) = matrices::own_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let nothing = Element::constant(b, dtype, 0.0);
        let search = Search::new(b, dtype.compute(), threads);
        // The place of each step's pivot.
        let places = b.shared(ScalarType::U32, 1, columns);
        let none = b.u32(u32::MAX);
        b.if_(local.lt(columns), || places.store(local, none));
        // The row of the pivot, and what it is divided by: the reciprocal of the pivot, where that
        // is an ordinary number.
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
                    // Never NaN: where there is nothing else the row stays where it is.
                    let sizes: Vec<(Value, Value)> = rows
                        .iter()
                        .map(|row| {
                            let size = row.held[0].get().size();
                            let counts = row.exists & row.place.get().ge(j) & !size.is_nan();
                            (counts, counts.select(size, size.like(-1.0)))
                        })
                        .collect();
                    let own = sizes.iter().map(|&(_, size)| size).reduce(|x, y| y.gt(x).select(y, x));
                    let largest = search.largest(own.unwrap_or(nothing.real()));
                    for (row, (counts, size)) in rows.iter().zip(sizes) {
                        b.if_(counts & size.eq(largest), || {
                            places.atomic(Atomic::Min, j, row.place.get());
                        });
                    }
                    b.barrier();
                    let found = places.load(j);
                    found.eq(none).select(j, found)
                } else {
                    j
                };
                let ordinary = |pivot: Element<'b>| pivot.size().gt(1e-30) & pivot.size().lt(1e30);
                for row in &rows {
                    let chosen = row.place.get().eq(pivot);
                    b.if_(chosen, || {
                        for k in start..columns {
                            told.store(k - start, row.held[(k - start) as usize].get());
                        }
                        let own = row.held[0].get();
                        b.if_(ordinary(own), || told.store(columns, own.like(1.0) / own));
                    });
                    let moved = row.place.get().eq(j).select(pivot, row.place.get());
                    row.place.set(chosen.select(j, moved));
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
                    let first = row.held[0].get();
                    b.if_else(
                        row.place.get().gt(j),
                        || {
                            let factor = ElementVar::var(b, first);
                            b.if_else(
                                ordinary(divisor),
                                || factor.set(first * reciprocal),
                                || b.if_(!singular, || factor.set(first / divisor)),
                            );
                            let factor = factor.get();
                            for k in 1..columns {
                                let mut next = row.held[k as usize].get();
                                // What is done comes behind the `columns - j` that are not.
                                if k < columns - start {
                                    let updated = next - factor * told.load(k);
                                    let sure = k <= columns - start - step;
                                    next = if sure {
                                        updated
                                    } else {
                                        Element::select((j + k).lt(columns), updated, next)
                                    };
                                }
                                row.held[k as usize - 1].set(next);
                            }
                            row.held[columns as usize - 1].set(factor);
                        },
                        || row.turn(first),
                    );
                }
                // Where nothing else does, it keeps this row from the next one.
                if !self.pivot {
                    b.barrier();
                }
            });
        }
        Row::turn_back(b, &rows, p.columns);
        for row in &rows {
            b.if_(row.exists, || {
                for (column, held) in row.held.iter().enumerate() {
                    let column = b.u32(column as u32);
                    b.if_(column.lt(p.columns), || {
                        p.a.store(p.strides.at(matrix, row.place.get(), column), held.get());
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
            accepted(&HeldPanel { dtype, index, pivot, shape }.build());
        }
    }
}
