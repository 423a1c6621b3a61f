//! The reduction of symmetric and Hermitian matrices to real tridiagonal form, `A = Q T Q^H`, by
//! Householder reflections.
//!
//! Each column is one launch, as in LAPACK's `sytd2` and `hetd2` (Martin, Reinsch, Wilkinson,
//! "Householder's tridiagonalization of a symmetric matrix", 1968): every workgroup redundantly
//! computes the update by the previous reflection and this column's reflection, then updates its
//! own columns, and accumulates their products with the new vector in the same pass. So the device
//! synchronises once for each column.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements};
use crate::linear_algebra::householder;
use crate::linear_algebra::jacobi::mirrored;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::linear_algebra::workgroup_sums::{ElementSum, THREADS, WorkgroupReduction, larger};
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// Columns that a workgroup updates.
const COLUMNS: u32 = 4;

/// Matrices in tridiagonal form, and the reflections that reduce them to it.
pub struct Tridiagonal {
    /// The diagonals, real `[batch, n]`.
    pub diagonal: View,
    /// The subdiagonals, real `[batch, n]`: element `i` couples `i` and `i + 1`. The last one is 0.
    pub off_diagonal: View,
    /// Bounds on the absolute values of the eigenvalues, real `[batch]`.
    pub bounds: View,
    /// The vectors of the reflections `I - tau v v^H` below ones on the diagonal, `[batch, n, n]`;
    /// the first reflection is the identity.
    v: View,
    /// The factors of the reflections, `[batch, n]`.
    tau: View,
}

impl Tridiagonal {
    /// Reduces `a`, `[batch, n, n]` with at least one element, of which both triangles are read and
    /// destroyed. The Frobenius norm of a matrix is at least about one and not much more, or the
    /// matrix is zero.
    pub fn of(cx: &Context, a: &View) -> Result<Tridiagonal> {
        let (batch, n) = (a.sizes[0], a.sizes[1]);
        check_loop_iterations(cx, 4 * n / i64::from(THREADS) + 400)?;
        let real = a.dtype.real();
        let zeros = |t: View| matrices::fill_with(cx, &t, Number::Int(0)).map(|()| t);
        let v = zeros(matrices::empty(cx, a.dtype, &[batch, n, n])?)?;
        let tau = zeros(cx.empty(a.dtype, &[batch, n])?)?;
        let mut y = zeros(cx.empty(a.dtype, &[batch, n])?)?;
        let mut next_y = cx.empty(a.dtype, &[batch, n])?;
        let diagonal = cx.empty(real, &[batch, n])?;
        let off_diagonal = zeros(cx.empty(real, &[batch, n])?)?;
        let spec = Column { dtype: a.dtype, index: matrices::index_of(&[a]) };
        for step in 0..n {
            let rest = n - step - 1;
            let tiles = (rest as u64).div_ceil(COLUMNS.into()).max(1) as i64;
            let arguments = ColumnArguments {
                a,
                v: &v,
                tau: &tau,
                y: &y,
                next_y: &next_y,
                diagonal: &diagonal,
                off_diagonal: &off_diagonal,
                strides: a,
                v_strides: &v,
                batch: batch as u32,
                n: n as u32,
                step: step as u32,
                tiles: tiles as u32,
            };
            let each = if a.dtype.is_complex() { 12 } else { 3 };
            let operations = multiply_adds(real, (each * batch * (rest + 1) * (rest + 1)) as u64);
            cx.run_with_cost(&spec, &arguments, matrices::workgroups(batch, tiles), operations)?;
            std::mem::swap(&mut y, &mut next_y);
        }
        let bounds = cx.empty(real, &[batch])?;
        let arguments = BoundsArguments {
            diagonal: &diagonal,
            off_diagonal: &off_diagonal,
            bounds: &bounds,
            batch: batch as u32,
            n: n as u32,
        };
        cx.run(&Bounds { dtype: real, index: spec.index }, &arguments, matrices::workgroups(batch, 1))?;
        Ok(Tridiagonal { diagonal, off_diagonal, bounds, v, tau })
    }

    /// `c = Q c` in place, for `[batch, n, k]`.
    pub fn apply(&self, cx: &Context, c: &View) -> Result<()> {
        householder::apply(cx, &self.v, &self.tau, c, false)
    }
}

/// Specialisation of a column's step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Column {
    /// The dtype of the matrices.
    dtype: DType,
    /// Integer type of offsets.
    index: ScalarType,
}

parameters! {
    Column as s => ColumnArguments, ColumnParameters {
        a: OutputElements = s.dtype,
        /// Column `step` is the vector of the previous reflection; the next column is written.
        v: OutputElements = s.dtype,
        tau: OutputElements = s.dtype,
        /// The matrix before the previous reflection times that reflection's vector; and the matrix
        /// before this reflection times this one's vector.
        y: InputElements = s.dtype,
        next_y: OutputElements = s.dtype,
        diagonal: Output = s.dtype.real(),
        off_diagonal: Output = s.dtype.real(),
        strides: MatrixStrides = s.index,
        v_strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
        step: U32,
        tiles: U32,
    }
}

impl KernelSpec for Column {
    fn name(&self) -> &'static str {
        "tridiagonal_column"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ColumnParameters<'b>) {
        let (dtype, compute) = (self.dtype, self.dtype.compute());
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, p.tiles);
        let (local, step, last) = (b.local_id(0), p.step, p.n - 1);
        let nothing = Element::constant(b, dtype, 0.0);
        let joined = WorkgroupReduction::new(b, compute, 1);
        let products = ElementSum::new(b, dtype, COLUMNS);
        let of_vector = |row: Value<'b>| matrix.cast(self.index) * p.n.cast(self.index) + row.cast(self.index);
        let real_sum = |first: Value<'b>, term: &dyn Fn(Value<'b>) -> Value<'b>| {
            let sum = b.var(b.float(compute, 0.0));
            b.for_(first + local, p.n, THREADS, |row| sum.set(sum.get() + term(row)));
            joined.join(&[sum], |x, y| x + y);
            joined.result(0)
        };

        // The update by the previous reflection: A - v w^H - w v^H with w = tau (y - tau^* (y^H v)
        // / 2 v), where y^H v is real.
        let before = |row: Value<'b>| p.v.load(p.v_strides.at(matrix, row, step));
        let tau = p.tau.load(of_vector(step));
        let along = real_sum(step, &|row| match (p.y.load(of_vector(row)), before(row)) {
            (Element::Complex(y), Element::Complex(v)) => y.re * v.re + y.im * v.im,
            (y, v) => y.real() * v.real(),
        });
        let half = tau.conjugate().times(along * 0.5);
        let correction = |row: Value<'b>, v: Element<'b>| tau * (p.y.load(of_vector(row)) - half * v);
        let changed = |row: Value<'b>,
                       column: Value<'b>,
                       (v, w): (Element<'b>, Element<'b>),
                       (v_of, w_of): (Element<'b>, Element<'b>)| {
            p.a.load(p.strides.at(matrix, row, column)) - (v * w_of.conjugate() + w * v_of.conjugate())
        };
        let pair = |row: Value<'b>| {
            let v = before(row);
            (v, correction(row, v))
        };

        // This column after the update, and the reflection that reduces it to the subdiagonal
        // element.
        let of_step = pair(step);
        let own = |row: Value<'b>, of_row: (Element<'b>, Element<'b>)| changed(row, step, of_row, of_step);
        let square = real_sum(step + 2, &|row| own(row, pair(row)).square());
        let next = (step + 1).min(last);
        let alpha = own(next, pair(next));
        // Squares of smaller numbers lose digits. Such numbers are negligible compared with a
        // matrix of norm one.
        let least = if compute == ScalarType::F64 { 2f64.powi(-800) } else { 2f64.powi(-80) };
        let total = alpha.square() + square;
        let flat = square.is_zero();
        let flat = alpha.imaginary().map_or(flat, |im| flat & im.is_zero()) | total.lt(least);
        let one = b.float(compute, 1.0);
        let norm = math::sqrt(flat.select(one, total));
        let beta = alpha.real().is_below_zero().select(norm, -norm);
        let factor = Element::select(flat, nothing, (alpha.of_same_kind(beta) - alpha).over(beta));
        let apart = Element::select(flat, nothing.like(1.0), alpha - alpha.of_same_kind(beta));
        let vector = |row: Value<'b>, of_row: (Element<'b>, Element<'b>)| {
            let below = Element::select(flat, nothing, own(row, of_row) / apart);
            Element::select(row.eq(next), nothing.like(1.0), below)
        };
        let first = step + 1;
        b.if_(tile.eq(0) & local.eq(0), || {
            p.diagonal.store(of_vector(step), own(step, of_step).real());
            b.if_(first.lt(p.n), || {
                p.off_diagonal.store(of_vector(step), flat.select(alpha.real(), beta));
                p.tau.store(of_vector(first), factor);
            });
        });

        // The workgroup's columns: updated, and multiplied by the new vector.
        let columns: Vec<Value> = (0..COLUMNS).map(|i| first + tile * COLUMNS + i).collect();
        let pairs: Vec<_> = columns.iter().map(|column| pair((*column).min(last))).collect();
        let sums: Vec<ElementVar> = columns.iter().map(|_| ElementVar::var(b, nothing)).collect();
        b.for_(first + local, p.n, THREADS, |row| {
            let of_row = pair(row);
            let new = vector(row, of_row);
            for ((&column, &of_column), sum) in columns.iter().zip(&pairs).zip(&sums) {
                b.if_(column.lt(p.n), || {
                    let value = changed(row, column, of_row, of_column);
                    p.a.store(p.strides.at(matrix, row, column), value);
                    sum.set(sum.get().add_product(value.conjugate(), new));
                });
            }
        });
        products.add(&sums);
        let column = first + tile * COLUMNS + local;
        b.if_(local.lt(COLUMNS) & column.lt(p.n), || {
            p.next_y.store(of_vector(column), products.sum(local));
            p.v.store(p.v_strides.at(matrix, column, first), vector(column, pair(column)));
        });
    }
}

/// Gershgorin's bound on the eigenvalues of tridiagonal matrices. One workgroup for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Bounds as s => BoundsArguments, BoundsParameters {
        diagonal: Input = s.dtype,
        off_diagonal: Input = s.dtype,
        bounds: Output = s.dtype,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Bounds {
    fn name(&self) -> &'static str {
        "tridiagonal_bounds"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BoundsParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let joined = WorkgroupReduction::new(b, compute, 1);
        let largest = b.var(b.float(compute, 0.0));
        let first = matrix.cast(self.index) * p.n.cast(self.index);
        b.for_(local, p.n, THREADS, |i| {
            let at = first + i.cast(self.index);
            let above = i.eq(0).select(largest.get().like(0.0), p.off_diagonal.load(i.eq(0).select(at, at - 1)).abs());
            largest.set(larger(largest.get(), p.diagonal.load(at).abs() + p.off_diagonal.load(at).abs() + above));
        });
        joined.join(&[largest], larger);
        b.if_(local.eq(0), || p.bounds.store(matrix, joined.result(0)));
    }
}

/// Makes matrices Hermitian, `[batch, n, n]`, from the lower triangle and the real parts of the
/// diagonal.
pub fn mirror(cx: &Context, a: &View) -> Result<()> {
    let spec = MirrorTriangle { dtype: a.dtype, index: matrices::index_of(&[a]) };
    let arguments = MirrorArguments { a, strides: a, numel: a.numel(), n: a.sizes[1] as u32 };
    cx.run_threads(&spec, &arguments, a.numel() as u64)
}

/// One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MirrorTriangle {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    MirrorTriangle as s => MirrorArguments, MirrorParameters {
        a: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        numel: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for MirrorTriangle {
    fn name(&self) -> &'static str {
        "mirror_triangle"
    }

    fn write<'b>(&self, b: &'b Builder, p: MirrorParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let n = p.n.cast(self.index);
            let (line, row) = (i / n, (i % n).cast(ScalarType::U32));
            let (matrix, column) = ((line / n).cast(ScalarType::U32), (line % n).cast(ScalarType::U32));
            b.if_(row.le(column), || {
                let value = mirrored(row, column, p.a.load(p.strides.at(matrix, column, row)));
                let value = Element::select(row.eq(column), value.of_same_kind(value.real()), value);
                p.a.store(p.strides.at(matrix, row, column), value);
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
            for dtype in [dtype, dtype.complex()] {
                accepted(&Column { dtype, index }.build());
                accepted(&MirrorTriangle { dtype, index }.build());
            }
            accepted(&Bounds { dtype, index }.build());
        }
    }
}
