//! Jacobi's method for the eigenvalues and eigenvectors of small symmetric and Hermitian matrices,
//! with rotations of disjoint pairs in parallel.
//!
//! A workgroup holds a matrix and the product of the rotations in shared memory. A round rotates
//! every row and column with one other, and a sweep is rounds in which every pair meets.
//! Off-diagonal elements only ever become linear combinations of off-diagonal elements: so they
//! converge to zero, in the end quadratically.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::jacobi::{Rotation, UnitPhase, mirrored, pair, rotated};
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{THREADS, WorkgroupReduction, larger};
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum number of sweeps; about seven are needed, and twice as many if most eigenvalues are
/// equal.
const SWEEPS: u32 = 40;

/// Maximum rows of a matrix. Two square matrices of this size are in shared memory.
pub const fn rows(dtype: DType) -> u32 {
    if dtype.is_complex() { 16 } else { 32 }
}

/// Writes eigenvalues in ascending order, real `[batch, n]` contiguous, and eigenvectors as columns
/// of `vectors`, `[batch, n, n]`. Of `a`, `[batch, n, n]` with at most [`rows`] rows, the lower
/// triangles are read.
pub fn decompose(cx: &Context, a: &View, values: &View, vectors: &View) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let spec = TwoSidedJacobi { dtype: a.dtype, index: matrices::index_of(&[a, vectors]) };
    let arguments = TwoSidedJacobiArguments {
        a,
        values,
        vectors,
        strides: a,
        vector_strides: vectors,
        batch: batch as u32,
        n: n as u32,
    };
    // Eight sweeps, each of 3 n^3 real multiplications.
    let each = if a.dtype.is_complex() { 4 * 24 } else { 24 };
    let operations = multiply_adds(values.dtype, each * batch as u64 * (n as u64).pow(3));
    cx.run_with_cost(&spec, &arguments, matrices::workgroups(batch, 1), operations)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TwoSidedJacobi {
    /// The dtype of the matrices.
    dtype: DType,
    /// Integer type of offsets.
    index: ScalarType,
}

parameters! {
    TwoSidedJacobi as s => TwoSidedJacobiArguments, TwoSidedJacobiParameters {
        a: InputElements = s.dtype,
        values: Output = s.dtype.real(),
        vectors: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        vector_strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for TwoSidedJacobi {
    fn name(&self) -> &'static str {
        "two_sided_jacobi"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: TwoSidedJacobiParameters<'b>) {
        let (dtype, compute, most) = (self.dtype, self.dtype.compute(), rows(self.dtype));
        // Leading dimension in shared memory: adjacent columns are in different banks.
        let pitch = most + 1;
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let zero = b.float(compute, 0.0);
        let real = |x: Value<'b>| Element::of_real(dtype, x);
        // Pairs of a round, and the number of their columns: an odd number of columns is padded
        // with zeros.
        let pairs = (p.n + 1) / 2;
        let players = pairs * 2;
        let [a, basis] = [(); 2].map(|()| SharedElements::shared(b, dtype, most * pitch));
        let [sines, halves, upper, lower] = [(); 4].map(|()| b.shared(compute, 1, most / 2));
        let phases = dtype.is_complex().then(|| SharedElements::shared(b, dtype, most / 2));
        let phase_of = |i: Value<'b>| UnitPhase(phases.map(|phases| phases.load(i)));
        let joined = WorkgroupReduction::new(b, compute, 2);
        let at = |row: Value<'b>, column: Value<'b>| row * pitch + column;
        let below = |x: Value<'b>, y: Value<'b>| at(x.max(y), x.min(y));

        b.for_(local, players * players, THREADS, |e| {
            let (row, column) = (e % players, e / players);
            let exists = row.lt(p.n) & column.le(row);
            let last = p.n - 1;
            let value = p.a.load(p.strides.at(matrix, row.min(last), column.min(last)));
            let value = Element::select(row.eq(column), value.of_same_kind(value.real()), value);
            a.store(at(row, column), Element::select(exists, value, real(zero)));
            basis.store(at(row, column), real(row.eq(column).cast(compute)));
        });
        // Off-diagonal elements up to this size are ignored: rotations for what is only rounding
        // error would add rounding errors.
        let negligible = b.var(zero);
        let is_left = || {
            b.barrier();
            let [on, off] = [(); 2].map(|()| b.var(zero));
            b.for_(local, players * players, THREADS, |e| {
                let (row, column) = (e % players, e / players);
                b.if_(column.le(row), || {
                    let size = a.load(at(row, column)).size();
                    let largest = |v: dml_kernel::Var<'b>| v.set(larger(v.get(), size));
                    b.if_else(row.eq(column), || largest(on), || largest(off));
                });
            });
            joined.join(&[on, off], larger);
            let epsilon = if compute == ScalarType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            negligible.set(joined.result(0) * (epsilon / 4.0));
            joined.result(1).gt(negligible.get())
        };
        let (going, sweep) = (b.var(is_left().cast(ScalarType::U32)), b.var(b.u32(0)));
        b.while_(
            || going.get().ne(0) & sweep.get().lt(SWEEPS),
            || {
                b.for_(0, players - 1, 1, |round| {
                    b.if_(local.lt(pairs), || {
                        let (x, y) = pair(players, round, local);
                        let (phase, size) = UnitPhase::split(a.load(at(y, x)));
                        let size = size.abs().gt(negligible.get()).select(size, zero);
                        let (xx, yy) = (a.load(at(x, x)).real(), a.load(at(y, y)).real());
                        let rotation = Rotation::of(xx, yy, size);
                        sines.store(local, rotation.sine);
                        halves.store(local, rotation.half_tangent);
                        upper.store(local, xx - rotation.tangent * size);
                        lower.store(local, yy + rotation.tangent * size);
                        if let (Some(phases), UnitPhase(Some(phase))) = (phases, phase) {
                            phases.store(local, phase);
                        }
                    });
                    b.barrier();
                    let turn = |i: Value<'b>, phase: UnitPhase<'b>, (x, y): (Element<'b>, Element<'b>)| {
                        rotated((sines.load(i), halves.load(i)), phase, x, y)
                    };
                    b.for_(local, pairs * pairs, THREADS, |e| {
                        let (i, j) = (e / pairs, e % pairs);
                        let (rows, columns) = (pair(players, round, i), pair(players, round, j));
                        b.if_(i.eq(j), || {
                            a.store(at(rows.0, rows.0), real(upper.load(i)));
                            a.store(at(rows.1, rows.1), real(lower.load(i)));
                            b.if_(sines.load(i).ne(zero), || a.store(at(rows.1, rows.0), real(zero)));
                        });
                        b.if_(i.lt(j), || {
                            let element = |x: Value<'b>, y: Value<'b>| mirrored(x, y, a.load(below(x, y)));
                            let row = |x: Value<'b>| (element(x, columns.0), element(x, columns.1));
                            let ((xx, xy), (yx, yy)) = (row(rows.0), row(rows.1));
                            let (of_rows, of_columns) = (phase_of(i).conjugate(), phase_of(j));
                            let ((xx, xy), (yx, yy)) = (turn(j, of_columns, (xx, xy)), turn(j, of_columns, (yx, yy)));
                            let ((xx, yx), (xy, yy)) = (turn(i, of_rows, (xx, yx)), turn(i, of_rows, (xy, yy)));
                            for (x, y, value) in [
                                (rows.0, columns.0, xx),
                                (rows.0, columns.1, xy),
                                (rows.1, columns.0, yx),
                                (rows.1, columns.1, yy),
                            ] {
                                a.store(below(x, y), mirrored(x, y, value));
                            }
                        });
                    });
                    b.for_(local, pairs * p.n, THREADS, |e| {
                        let (i, row) = (e / p.n, e % p.n);
                        let (x, y) = pair(players, round, i);
                        let (left, right) = turn(i, phase_of(i), (basis.load(at(row, x)), basis.load(at(row, y))));
                        basis.store(at(row, x), left);
                        basis.store(at(row, y), right);
                    });
                    b.barrier();
                });
                sweep.set(sweep.get() + 1);
                going.set(is_left().cast(ScalarType::U32));
            },
        );

        // The columns' positions in ascending order of eigenvalues.
        let ranks = b.shared(ScalarType::U32, 1, most);
        b.if_(local.lt(p.n), || {
            let value = a.load(at(local, local)).real();
            let rank = b.var(b.u32(0));
            b.for_(0, p.n, 1, |j| {
                let other = a.load(at(j, j)).real();
                let comes = other.lt(value) | (other.eq(value) & j.lt(local));
                rank.set(rank.get() + comes.cast(ScalarType::U32));
            });
            ranks.store(local, rank.get());
            p.values.store(matrix.cast(self.index) * p.n.cast(self.index) + rank.get().cast(self.index), value);
        });
        b.barrier();
        b.for_(local, p.n * p.n, THREADS, |e| {
            let (row, column) = (e % p.n, e / p.n);
            p.vectors.store(p.vector_strides.at(matrix, row, ranks.load(column)), basis.load(at(row, column)));
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
            accepted(&TwoSidedJacobi { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&TwoSidedJacobi { dtype, index: ScalarType::U64 }.build());
        }
    }
}
