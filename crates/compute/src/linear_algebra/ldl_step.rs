//! Kernels of a step of Bunch and Kaufman's decomposition: one finds the pivot, which is one
//! element or a 2x2 block, and exchanges rows and columns; the other updates the trailing matrix.
//!
//! The columns of L are scaled when the next pivot is searched, since the update reads them
//! unscaled. Every launch processes the whole batch, whose matrices may be at different columns.

use crate::linear_algebra::element::{Element, Elements, OutputElements};
use crate::linear_algebra::ldl_blocks::coupling;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{MaxSearch, THREADS};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Entries of a matrix's state: the pivot's first column, its number of columns, and whether it is
/// non-singular.
pub const STATE: i64 = 3;

/// A matrix of the batch, stored in the lower triangle.
struct Lower<'b> {
    a: Elements<'b>,
    strides: crate::linear_algebra::matrices::StrideParams<'b>,
    matrix: Value<'b>,
    hermitian: bool,
}

impl<'b> Lower<'b> {
    fn at(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.strides.at(self.matrix, row, column)
    }

    fn load(&self, row: Value<'b>, column: Value<'b>) -> Element<'b> {
        self.a.load(self.at(row, column))
    }

    fn store(&self, row: Value<'b>, column: Value<'b>, value: Element<'b>) {
        self.a.store(self.at(row, column), value);
    }

    fn exchange(&self, x: (Value<'b>, Value<'b>), y: (Value<'b>, Value<'b>)) {
        let (of_x, of_y) = (self.load(x.0, x.1), self.load(y.0, y.1));
        self.store(x.0, x.1, of_y);
        self.store(y.0, y.1, of_x);
    }

    /// Exchanges two elements that were each on the other side of the diagonal.
    fn exchange_across(&self, x: (Value<'b>, Value<'b>), y: (Value<'b>, Value<'b>)) {
        let (of_x, of_y) = (self.load(x.0, x.1), self.load(y.0, y.1));
        self.store(x.0, x.1, self.across(of_y));
        self.store(y.0, y.1, self.across(of_x));
    }

    /// An element of the other side of the diagonal.
    fn across(&self, element: Element<'b>) -> Element<'b> {
        if self.hermitian { element.conjugate() } else { element }
    }

    /// The element of L from element `x` of the column of a pivot at `k`.
    fn divided(&self, k: Value<'b>, x: Element<'b>) -> Element<'b> {
        let one = x.like(1.0);
        one / self.load(k, k) * x
    }

    /// The elements of L from a row's elements `x` and `y` of the two columns of a block.
    fn divided_by_block(&self, k: Value<'b>, x: Element<'b>, y: Element<'b>) -> (Element<'b>, Element<'b>) {
        let (phase, below) = coupling(self.load(k + 1, k), self.hermitian);
        let (second, first) = (self.load(k + 1, k + 1) / below, self.load(k, k) / below);
        let factor = x.like(1.0) / (second * first - x.like(1.0)) / below;
        (factor * (second * x - phase.of(y)), factor * (first * y - phase.conjugate().of(x)))
    }
}

/// Scales the columns of the last pivot, and finds the next. One workgroup for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pivot {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The matrices are Hermitian, not symmetric.
    pub hermitian: bool,
}

parameters! {
    pub Pivot as s => PivotArguments, PivotParameters {
        a: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        /// `[batch, STATE]`, initially zeros.
        state: Output = DType::I32,
        /// `[batch, n]`, as in LAPACK: the row that was exchanged with this one, counted from 1;
        /// negative for both rows of a block.
        pivots: Output = DType::I32,
        /// `[batch]`: 0, or the first pivot that is zero, counted from 1.
        info: Output = DType::I32,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Pivot {
    fn name(&self) -> &'static str {
        "ldl_pivot"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PivotParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let a = Lower { a: p.a, strides: p.strides, matrix, hermitian: self.hermitian };
        let of_state = |i: u32| matrix * (STATE as u32) + i;
        let [before, columns, divides] = [0, 1, 2].map(|i| p.state.load(of_state(i)).cast(ScalarType::U32));
        let k = before + columns;
        b.if_(divides.ne(0), || {
            b.for_(k + local, p.n, THREADS, |row| {
                b.if_else(
                    columns.eq(1),
                    || a.store(row, before, a.divided(before, a.load(row, before))),
                    || {
                        let (x, y) = a.divided_by_block(before, a.load(row, before), a.load(row, before + 1));
                        a.store(row, before, x);
                        a.store(row, before + 1, y);
                    },
                );
            });
        });
        // All invocations have read the state before it is written.
        b.barrier();
        b.if_else(
            k.lt(p.n),
            || self.choose(b, &p, &a, k, compute),
            || {
                b.if_(local.lt(STATE as u32), || {
                    p.state.store(of_state(0) + local, local.eq(0).select(k, 0).cast(ScalarType::I32))
                })
            },
        );
    }
}

impl Pivot {
    /// Chooses the pivot of column `k`, and exchanges rows and columns.
    fn choose<'b>(&self, b: &'b Builder, p: &PivotParameters<'b>, a: &Lower<'b>, k: Value<'b>, compute: ScalarType) {
        let local = b.local_id(0);
        let zero = b.float(compute, 0.0);
        // The threshold for which the bounds on element growth are equal for pivots of one and of
        // two columns.
        let alpha = b.float(compute, (1.0 + 17f64.sqrt()) / 8.0);
        let search = MaxSearch::new(b, compute, THREADS);
        let (largest, largest_row) = (b.var(b.float(compute, -1.0)), b.var(b.u32(0)));
        let consider = |row: Value<'b>, value: Element<'b>| {
            b.if_(value.size().gt(largest.get()), || {
                largest.set(value.size());
                largest_row.set(row);
            });
        };
        b.for_(k + 1 + local, p.n, THREADS, |row| consider(row, a.load(row, k)));
        let (of_column, other) = search.find(largest.get(), largest_row.get());
        let of_column = of_column.lt(zero).select(zero, of_column);
        let own = a.load(k, k).size();
        let none = own.is_nan() | (own.is_zero() & of_column.is_zero());
        let (to, two) = (b.var(k), b.var(b.u32(0)));
        b.if_(!none & !own.ge(alpha * of_column), || {
            largest.set(-1.0);
            b.for_(k + local, p.n, THREADS, |i| {
                b.if_(i.ne(other), || consider(i, a.load(i.max(other), i.min(other))));
            });
            let (of_row, _) = search.find(largest.get(), largest_row.get());
            b.if_(!own.ge(alpha * of_column * (of_column / of_row)), || {
                to.set(other);
                two.set((!a.load(other, other).size().ge(alpha * of_row)).cast(ScalarType::U32));
            });
        });
        // The elements that were searched are exchanged next.
        b.barrier();
        let (to, two) = (to.get(), two.get());
        let from = k + two;
        b.if_(to.ne(from), || {
            b.for_(to + 1 + local, p.n, THREADS, |row| a.exchange((row, from), (row, to)));
            b.for_(from + 1 + local, to, THREADS, |i| a.exchange_across((i, from), (to, i)));
            b.if_(local.eq(0), || {
                a.exchange((from, from), (to, to));
                if self.hermitian {
                    a.store(to, from, a.across(a.load(to, from)));
                }
                b.if_(two.ne(0), || a.exchange((from, k), (to, k)));
            });
        });
        b.if_(local.eq(0), || {
            let at = a.matrix.cast(self.index) * p.n.cast(self.index) + k.cast(self.index);
            let number = (to + 1).cast(ScalarType::I32);
            b.if_else(
                two.ne(0),
                || (0..2).for_each(|i| p.pivots.store(at + i, -number)),
                || p.pivots.store(at, number),
            );
            b.if_(none & p.info.load(a.matrix).eq(0), || p.info.store(a.matrix, (k + 1).cast(ScalarType::I32)));
            for (i, value) in (0..).zip([k, two + 1, (!none).cast(ScalarType::U32)]) {
                p.state.store(a.matrix * (STATE as u32) + i, value.cast(ScalarType::I32));
            }
        });
    }
}

/// Subtracts the pivot's contribution from the trailing matrix. One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// The matrices are Hermitian, not symmetric.
    pub hermitian: bool,
}

parameters! {
    pub Update as s => UpdateArguments, UpdateParameters {
        a: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        state: Input = DType::I32,
        /// Number of elements of all matrices, without the first rows and columns.
        numel: Index = s.index,
        n: U32,
        /// Rows and columns that are completed in every matrix.
        first: U32,
    }
}

impl KernelSpec for Update {
    fn name(&self) -> &'static str {
        "ldl_update"
    }

    fn write<'b>(&self, b: &'b Builder, p: UpdateParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let rest = (p.n - p.first).cast(self.index);
            let line = i / rest;
            let row = (i - line * rest).cast(ScalarType::U32) + p.first;
            let column = (line % rest).cast(ScalarType::U32) + p.first;
            let matrix = (line / rest).cast(ScalarType::U32);
            let [k, columns, divides] =
                [0, 1, 2].map(|i| p.state.load(matrix * (STATE as u32) + i).cast(ScalarType::U32));
            let a = Lower { a: p.a, strides: p.strides, matrix, hermitian: self.hermitian };
            b.if_(row.ge(column) & column.ge(k + columns) & divides.ne(0), || {
                let (x, y) = (a.load(row, k), a.load(column, k));
                // The diagonal of a Hermitian matrix is real.
                let left = |value: Element<'b>| {
                    if self.hermitian {
                        Element::select(row.eq(column), value.of_same_kind(value.real()), value)
                    } else {
                        value
                    }
                };
                b.if_else(
                    columns.eq(1),
                    || a.store(row, column, left(a.load(row, column) - x * a.across(a.divided(k, y)))),
                    || {
                        let (next_x, next_y) = (a.load(row, k + 1), a.load(column, k + 1));
                        let (first, second) = a.divided_by_block(k, y, next_y);
                        let less = a.load(row, column) - x * a.across(first) - next_x * a.across(second);
                        a.store(row, column, left(less));
                    },
                );
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&Pivot { dtype, index, hermitian: false }.build());
            accepted(&Update { dtype, index, hermitian: false }.build());
        }
        for (dtype, hermitian) in [(DType::C64, true), (DType::C128, false)] {
            accepted(&Pivot { dtype, index: ScalarType::U32, hermitian }.build());
            accepted(&Update { dtype, index: ScalarType::U64, hermitian }.build());
        }
    }
}
