//! The singular value decomposition `A = U S V^H`.
//!
//! A matrix that is wide is transposed first. `A = Q R` is computed with the longest columns of A
//! first, so that the rest works on square matrices. [Jacobi's one-sided
//! method](super::one_sided_jacobi) makes the columns of `L = R^H` orthogonal, which takes fewer
//! sweeps than the columns of R would (Drmač, Veselić, "New fast and accurate Jacobi SVD
//! algorithm", 2008). The columns of the result `W = L V` have the singular values as norms;
//! another QR decomposition makes an orthogonal matrix from W, even if columns are zero. Each A is
//! scaled by a power of two.

use crate::context::Context;
use crate::creation::triangle::{Half, copy_half};
use crate::error::Result;
use crate::linear_algebra::element::{Element, InputElements, OutputElements};
use crate::linear_algebra::matrices::{
    self, MatrixStrides, Update, adjoint, conjugated, device_copy, part, transposed,
};
use crate::linear_algebra::one_sided_jacobi::{self, Columns};
use crate::linear_algebra::orthogonal::polish;
use crate::linear_algebra::tridiagonal::mirror;
use crate::linear_algebra::{column_norms, eigh, householder, qr, sorted_columns};
use crate::movement::copy::fill_with;
use crate::primitives::kernel::KernelSpec;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// U, singular values and V^H as new tensors.
pub fn decomposed(cx: &Context, a: &View, full: bool, vectors: bool) -> Result<[View; 3]> {
    let batch = matrices::batch_of(a);
    let (m, n) = (a.size(-2), a.size(-1));
    let k = m.min(n);
    let s = cx.empty(a.dtype.real(), &matrices::sizes_of(batch, &[k]))?;
    let [u, vh] = if vectors {
        let (rows, columns) = if full { (m, n) } else { (k, k) };
        let u = matrices::identity(cx, a.dtype, &matrices::sizes_of(batch, &[m, rows]))?;
        [u, matrices::identity(cx, a.dtype, &matrices::sizes_of(batch, &[columns, n]))?]
    } else {
        [cx.empty(a.dtype, &[0])?, cx.empty(a.dtype, &[0])?]
    };
    if a.numel() > 0 {
        let flat = vectors.then(|| (matrices::flat(&u), transposed(&matrices::flat(&vh))));
        let values = s.as_strided(&[s.numel() / k, k], &[k, 1], 0);
        if m < n {
            decompose(cx, &adjoint(a), &values, flat.map(|(u, v)| (v, u)))?;
        } else {
            decompose(cx, a, &values, flat)?;
        }
        if vectors {
            conjugate(cx, &vh)?;
        }
    }
    Ok([u, s, vh])
}

/// Conjugates complex matrices in place.
fn conjugate(cx: &Context, t: &View) -> Result<()> {
    if t.dtype.is_complex() { device_copy(cx, &conjugated(t), t) } else { Ok(()) }
}

/// Decomposes `a`, which is not wide. Writes the singular values to `values`, `[batch, n]`
/// contiguous, and the vectors to columns of `[batch, m, ..]` and `[batch, n, n]`. The first of
/// these has to be initialised with the identity.
fn decompose(cx: &Context, a: &View, values: &View, vectors: Option<(View, View)>) -> Result<()> {
    let (batch, n) = (values.sizes[0], values.sizes[1]);
    let copied = matrices::copied(cx, a, &a.sizes)?;
    let flags = cx.empty(DType::I32, &[2])?;
    fill_with(cx, &flags, Number::Int(0))?;
    let norms = column_norms::norms(cx, &matrices::flat(&copied))?;
    let powers = column_norms::powers(cx, &norms, &flags.narrow(0, 1, 1))?;
    column_norms::scale(cx, &copied, &powers, true)?;
    let sorted = matrices::empty(cx, a.dtype, &a.sizes)?;
    let order = sorted_columns::sort(cx, &norms, &cx.empty(norms.dtype, &norms.sizes)?, true)?;
    sorted_columns::permute_columns(cx, &matrices::flat(&copied), &matrices::flat(&sorted), &order)?;

    let (qr, tau) = qr::decompose(cx, &sorted)?;
    let qr = matrices::flat(&qr);
    let l = matrices::empty(cx, a.dtype, &[batch, n, n])?;
    copy_half(cx, &part(&qr, (0, n), (0, n)), &transposed(&l), 0, Half::Upper)?;
    conjugate(cx, &l)?;
    let columns = Columns::new(cx, &l, &flags, vectors.is_some())?;
    if n > MIN_PRECONDITIONED_COLUMNS {
        columns.rotate(&approximate_right_vectors(cx, &l, &flags)?)?;
    }
    columns.orthogonalise()?;

    let unsorted = column_norms::norms(cx, &columns.columns())?;
    let ranks = sorted_columns::sort(cx, &unsorted, values, true)?;
    column_norms::scale(cx, values, &powers, false)?;
    let Some((left, right)) = vectors else { return Ok(()) };
    sorted_columns::permute_columns(cx, &columns.rotations(), &part(&left, (0, n), (0, n)), &ranks)?;
    householder::apply(cx, &qr, &tau, &left, false)?;
    polish(cx, &left)?;

    let w = matrices::empty(cx, a.dtype, &[batch, n, n])?;
    sorted_columns::permute_columns(cx, &columns.columns(), &w, &ranks)?;
    let (qr, tau) = qr::decompose(cx, &w)?;
    let qr = matrices::flat(&qr);
    let u = matrices::identity(cx, a.dtype, &[batch, n, n])?;
    let spec = Signs { dtype: a.dtype, index: matrices::index_of(&[&qr, &u]) };
    let arguments = SignsArguments { r: &qr, signs: &u, strides: &u, numel: batch * n, n: n as u32 };
    cx.run_threads(&spec, &arguments, (batch * n) as u64)?;
    householder::apply(cx, &qr, &tau, &u, false)?;
    polish(cx, &u)?;
    sorted_columns::unpermute_columns(cx, &transposed(&u), &transposed(&right), &order)
}

/// Minimum number of columns for which computing the eigenvectors of `L^H L` is faster than the
/// Jacobi sweeps that it saves.
const MIN_PRECONDITIONED_COLUMNS: i64 = 64;

/// The right singular vectors of `l`, `[batch, n, n]`, as accurate as squaring allows: those of
/// small singular values are little more than orthogonal to the others. They are in descending
/// order of singular values. Reads back whether all numbers are finite.
fn approximate_right_vectors(cx: &Context, l: &View, flags: &View) -> Result<View> {
    let (batch, n) = (l.sizes[0], l.sizes[1]);
    one_sided_jacobi::check_finite(cx, flags)?;
    let square = matrices::empty(cx, l.dtype, &l.sizes)?;
    matrices::multiply(cx, [&adjoint(l), l], &square, Update::Overwrite)?;
    mirror(cx, &square)?;
    let [values, sorted] = [(); 2].map(|()| cx.empty(l.dtype.real(), &[batch, n]));
    let (values, v) = (values?, matrices::empty(cx, l.dtype, &l.sizes)?);
    eigh::vectors_of(cx, &square, &values, &v)?;
    let ranks = sorted_columns::sort(cx, &values, &sorted?, true)?;
    sorted_columns::permute_columns(cx, &v, &square, &ranks)?;
    Ok(square)
}

/// Writes the signs of a real diagonal to another diagonal. One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Signs {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Signs as s => SignsArguments, SignsParameters {
        r: InputElements = s.dtype,
        signs: OutputElements = s.dtype,
        /// Strides of both matrices.
        strides: MatrixStrides = s.index,
        numel: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Signs {
    fn name(&self) -> &'static str {
        "signs_of_diagonal"
    }

    fn write<'b>(&self, b: &'b Builder, p: SignsParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let n = p.n.cast(self.index);
            let (matrix, row) = ((i / n).cast(ScalarType::U32), (i % n).cast(ScalarType::U32));
            let value = p.r.load(p.strides.at(matrix, row, row)).real();
            let one = value.like(1.0);
            let sign = || Element::of_real(self.dtype, value.is_below_zero().select(-one, one));
            p.signs.store(p.strides.at(matrix, row, row), sign());
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
            accepted(&Signs { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&Signs { dtype, index: ScalarType::U64 }.build());
        }
    }
}
