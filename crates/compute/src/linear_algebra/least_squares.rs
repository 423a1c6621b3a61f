//! Least squares: by QR for matrices of full rank (driver `gels`, the default, as on CUDA), by
//! singular values for others.

use crate::complex;
use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::functions::{LEAST_SQUARES_SCALED, LEAST_SQUARES_SQUARED};
use crate::linear_algebra::matrices::{self, Update, adjoint, device_copy, fill_with, part};
use crate::linear_algebra::triangular::{self, Triangle};
use crate::linear_algebra::{column_norms, householder, qr, svd};
use crate::movement::copy::read_numbers;
use crate::pointwise::kernel::{self, Input as Operand};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::{Dims, View};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// A problem `[.., m, n]`, `[.., m, k]`, whose batches broadcast to `batch`, and memory for its
/// solution.
pub struct Problem<'a> {
    /// The matrices, `[.., m, n]`.
    pub a: &'a View,
    /// The right-hand sides, `[.., m, k]`.
    pub b: &'a View,
    /// Sizes of the batch.
    pub batch: Dims,
    /// `[batch, max(m, n), k]`; the solution is the first n rows.
    pub x: View,
}

impl Problem<'_> {
    fn shape(&self) -> (i64, i64, i64) {
        (self.a.size(-2), self.a.size(-1), self.b.size(-1))
    }

    /// The matrices, expanded to the batch.
    fn matrices(&self) -> View {
        self.a.expand(&matrices::sizes_of(&self.batch, &[self.a.size(-2), self.a.size(-1)]))
    }

    /// Writes the right-hand sides to the first rows of `x`, and zeros below.
    fn write_right_sides(&self, cx: &Context) -> Result<()> {
        let (m, n, k) = self.shape();
        let rows = |from, count| self.x.narrow(self.x.dim() - 2, from, count);
        device_copy(cx, &self.b.expand(&matrices::sizes_of(&self.batch, &[m, k])), &rows(0, m))?;
        if m < n { fill_with(cx, &rows(m, n - m), Number::Int(0)) } else { Ok(()) }
    }

    /// Solves with Q and R of the matrices, or of their adjoints if they are wide; returns whether
    /// they have full rank. The rows of `x` below the solution then have the norms of the
    /// residuals.
    pub fn solve_of_full_rank(&self, cx: &Context) -> Result<bool> {
        let (m, n, k) = self.shape();
        let a = self.matrices();
        if self.x.numel() == 0 {
            return Ok(true);
        }
        if a.numel() == 0 {
            // As in LAPACK, so that there are no residuals either.
            fill_with(cx, &self.x, Number::Int(0))?;
            return Ok(true);
        }
        self.write_right_sides(cx)?;
        let tall = m >= n;
        let (qr, tau) = qr::decompose(cx, &if tall { a } else { adjoint(&a) })?;
        let (qr, x) = (matrices::flat(&qr), matrices::flat(&self.x));
        let least = m.min(n);
        let r = part(&qr, (0, least), (0, least));
        if matrices::has_zero(cx, &matrices::diagonal_of(&r))? {
            return Ok(false);
        }
        let top = part(&x, (0, least), (0, k));
        if tall {
            householder::apply(cx, &qr, &tau, &x, true)?;
            triangular::solve(cx, &r, &top, Triangle::UPPER)?;
        } else {
            triangular::solve(cx, &adjoint(&r), &top, Triangle::LOWER)?;
            householder::apply(cx, &qr, &tau, &x, false)?;
        }
        Ok(true)
    }

    /// Solves with the singular values that are larger than `rcond` times the largest. Returns
    /// their number, and the values.
    pub fn solve_of_any_rank(&self, cx: &Context, rcond: Option<f64>) -> Result<(View, View)> {
        let (m, n, k) = self.shape();
        let batch = matrices::batch_of(self.a);
        let epsilon = if self.a.dtype.real() == DType::F32 { f32::EPSILON.into() } else { f64::EPSILON };
        let rcond = rcond.unwrap_or(epsilon * m.max(n) as f64);
        let rcond = if rcond < 0.0 { epsilon / 2.0 } else { rcond };
        let [u, values, vh] = svd::decomposed(cx, self.a, false, true)?;
        let least = m.min(n);
        let rank = cx.empty(DType::I64, batch)?;
        if values.numel() == 0 {
            if rank.numel() > 0 {
                fill_with(cx, &rank, Number::Int(0))?;
            }
            if self.x.numel() > 0 {
                fill_with(cx, &self.x, Number::Int(0))?;
            }
            return Ok((rank, values));
        }
        let reciprocals = cx.empty(values.dtype, &values.sizes)?;
        let spec = InvertSingularValues { dtype: values.dtype, index: matrices::index_of(&[&values]) };
        let arguments = CutArguments {
            values: &values,
            reciprocals: &reciprocals,
            rank: &rank,
            rcond: Number::Double(rcond),
            numel: values.numel(),
            n: least as u32,
        };
        cx.run_threads(&spec, &arguments, values.numel() as u64)?;
        if self.x.numel() == 0 {
            return Ok((rank, values));
        }
        let inner = matrices::empty(cx, self.a.dtype, &matrices::sizes_of(&self.batch, &[least, k]))?;
        let b = matrices::to_contiguous_matrices(cx, self.b, &self.batch)?;
        let [u, vh] = [
            matrices::to_contiguous_matrices(cx, &u, &self.batch)?,
            matrices::to_contiguous_matrices(cx, &vh, &self.batch)?,
        ];
        matrices::multiply(cx, [&adjoint(&u), &b], &matrices::flat(&inner), Update::Overwrite)?;
        let reciprocals = matrices::column(&reciprocals).expand(&inner.sizes);
        let parts = if inner.dtype.is_complex() { complex::parts(&inner).to_vec() } else { vec![inner.clone()] };
        for part in parts {
            let inputs = [Operand::Tensor(part.clone()), Operand::Tensor(reciprocals.clone())];
            kernel::run(cx, &LEAST_SQUARES_SCALED, &[&part], &inputs, part.dtype)?;
        }
        let x = part(&matrices::flat(&self.x), (0, n), (0, k));
        matrices::multiply(cx, [&adjoint(&vh), &matrices::flat(&inner)], &x, Update::Overwrite)?;
        Ok((rank, values))
    }

    /// The residuals of solutions by singular values, if all matrices have full rank.
    pub fn residuals(&self, cx: &Context, rank: &View) -> Result<Option<View>> {
        let (m, n, k) = self.shape();
        if m <= n {
            return Ok(None);
        }
        let ranks: Vec<Number> = read_numbers(cx, rank)?;
        if ranks.iter().any(|rank| rank.to_i64() != n) {
            return Ok(None);
        }
        let left = matrices::copied(cx, self.b, &matrices::sizes_of(&self.batch, &[m, k]))?;
        if left.numel() > 0 {
            let a = matrices::to_contiguous_matrices(cx, self.a, &self.batch)?;
            let x = part(&matrices::flat(&self.x), (0, n), (0, k));
            matrices::multiply(cx, [&a, &x], &matrices::flat(&left), Update::Subtract)?;
        }
        self.squares(cx, &left).map(Some)
    }

    /// The residuals of solutions by Q and R.
    pub fn residual_sums_of_squares(&self, cx: &Context) -> Result<Option<View>> {
        let (m, n, _) = self.shape();
        if m <= n {
            return Ok(None);
        }
        self.squares(cx, &self.x.narrow(self.x.dim() - 2, n, m - n)).map(Some)
    }

    /// Sums of squares of the columns of `[batch, rows, k]`, whose batch is the one of `x` or
    /// contiguous.
    fn squares(&self, cx: &Context, t: &View) -> Result<View> {
        let sums = cx.empty(t.dtype.real(), &matrices::sizes_of(&self.batch, &[t.size(-1)]))?;
        if sums.numel() > 0 {
            let norms = column_norms::norms(cx, &matrices::to_contiguous_matrices(cx, t, &self.batch)?)?;
            let norms = norms.as_strided(&sums.sizes, &sums.strides, 0);
            kernel::run(cx, &LEAST_SQUARES_SQUARED, &[&sums], &[Operand::Tensor(norms)], sums.dtype)?;
        }
        Ok(sums)
    }
}

/// Writes the reciprocals of singular values, zeros for those below the threshold, and the number
/// of those above it. One invocation for each value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InvertSingularValues {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    InvertSingularValues as s => CutArguments, CutParameters {
        /// `[batch, n]`, in descending order.
        values: Input = s.dtype,
        reciprocals: Output = s.dtype,
        rank: Output = DType::I64,
        rcond: InDType = s.dtype,
        numel: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for InvertSingularValues {
    fn name(&self) -> &'static str {
        "cut_singular_values"
    }

    fn write<'b>(&self, b: &'b Builder, p: CutParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let n = p.n.cast(self.index);
            let (matrix, first) = (i / n, i / n * n);
            let least = p.rcond * p.values.load(first);
            let value = p.values.load(i);
            let counts = value.gt(least);
            let divisor = counts.select(value, value.like(1.0));
            p.reciprocals.store(i, counts.select(value.like(1.0) / divisor, value.like(0.0)));
            // The count is written by the invocation of the last value above the threshold, or by
            // the first one if there is none.
            let position = (i - first).cast(ScalarType::I64);
            let last = (i + 1).eq(first + n) | !p.values.load((i + 1).min(first + n - 1)).gt(least);
            b.if_(counts & last, || p.rank.store(matrix, position + 1));
            b.if_(!counts & i.eq(first), || p.rank.store(matrix, 0));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&InvertSingularValues { dtype: DType::F32, index: ScalarType::U32 }.build());
        accepted(&InvertSingularValues { dtype: DType::F64, index: ScalarType::U64 }.build());
    }
}
