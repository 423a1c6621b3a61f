//! The singular value decomposition `A = U S V^H`.
//!
//! Of a matrix that is not wide (a wide one is transposed), its longest columns first, `A = Q R` is computed, so that what follows works on square
//! matrices only. [Jacobi's one-sided method](super::one_sided_jacobi) makes the columns of `L = R^H` orthogonal, which takes fewer sweeps than those
//! of R would (Drmač, Veselić, "New fast and accurate Jacobi SVD algorithm", 2008). With `L V = W`, whose columns are as long as the singular values,
//! another QR decomposition turns W into an orthogonal matrix, also where its columns are zeros. A is scaled by a power of two for all of it.

use super::column_norms;
use super::eigh;
use super::element::{Element, InputElements, OutputElements};
use super::householder;
use super::matrices::{self, Into, MatrixStrides, adjoint, conjugated, device_copy, part, transposed};
use super::one_sided_jacobi::{self, Columns};
use super::orthogonal::polish;
use super::qr;
use super::sorted_columns;
use super::tridiagonal::mirror;
use crate::creation::triangle::{Half, copy_half};
use crate::movement::copy::fill_with;
use crate::operator::argument::Outs;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::KernelSpec;
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    linalg_svd(A, full_matrices, compute_uv, driver, outs) {
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        "aten::_linalg_svd.U(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)",
    }
}

/// U `[.., m, k]`, singular values in descending order, `[.., k]`, and V^H `[.., k, n]` of `a`, `[.., m, n]`, where k is the smaller one of the two;
/// `full` square U and V. Without `vectors` both are empty.
fn linalg_svd(call: &mut Call, a: &Tensor, full: bool, vectors: bool, driver: Option<&str>, outs: Outs) -> Result<()> {
    matrices::check_matrices(a, "linalg.svd", "A")?;
    matrices::check_floats(a, "linalg.svd")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let dtypes = [a.dtype, a.dtype.real(), a.dtype];
    (0..3).try_for_each(|i| structured::check_given(given(i), dtypes[i]))?;
    if a.numel() > 0 {
        check!(
            driver.is_none(),
            Runtime,
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        );
        matrices::check_kernels(a, "linalg_svd_cpu")?;
    }
    for (i, made) in decomposed(call, a, full, vectors)?.into_iter().enumerate() {
        matrices::give(call, given(i), made)?;
    }
    Ok(())
}

/// U, singular values and V^H as new tensors.
pub fn decomposed(call: &Call, a: &Tensor, full: bool, vectors: bool) -> Result<[Tensor; 3]> {
    let batch = matrices::batch_of(a);
    let (m, n) = (a.size(-2), a.size(-1));
    let k = m.min(n);
    let s = call.empty(a.dtype.real(), &matrices::sizes_of(batch, &[k]))?;
    let [u, vh] = if vectors {
        let (rows, columns) = if full { (m, n) } else { (k, k) };
        let u = matrices::identity(call, a.dtype, &matrices::sizes_of(batch, &[m, rows]))?;
        [u, matrices::identity(call, a.dtype, &matrices::sizes_of(batch, &[columns, n]))?]
    } else {
        [call.empty(a.dtype, &[0])?, call.empty(a.dtype, &[0])?]
    };
    if a.numel() > 0 {
        let flat = vectors.then(|| (matrices::flat(&u), transposed(&matrices::flat(&vh))));
        let values = s.as_strided(&[s.numel() / k, k], &[k, 1], 0);
        if m < n {
            decompose(call, &adjoint(a), &values, flat.map(|(u, v)| (v, u)))?;
        } else {
            decompose(call, a, &values, flat)?;
        }
        if vectors {
            conjugate(call, &vh)?;
        }
    }
    Ok([u, s, vh])
}

/// Complex matrices conjugated in place.
fn conjugate(call: &Call, t: &Tensor) -> Result<()> {
    if t.dtype.is_complex() { device_copy(call, &conjugated(t), t) } else { Ok(()) }
}

/// Decomposes `a`, which is not wide. Writes the singular values to `values`, `[batch, n]` contiguous, and the vectors to columns of `[batch, m, ..]`
/// and `[batch, n, n]`; the first of these are ones on the diagonal and zeros before.
fn decompose(call: &Call, a: &Tensor, values: &Tensor, vectors: Option<(Tensor, Tensor)>) -> Result<()> {
    let (batch, n) = (values.sizes[0], values.sizes[1]);
    let copied = matrices::copied(call, a, &a.sizes)?;
    let flags = call.empty(DType::I32, &[2])?;
    fill_with(call, &flags, Number::Int(0))?;
    let norms = column_norms::norms(call, &matrices::flat(&copied))?;
    let powers = column_norms::powers(call, &norms, &flags.narrow(0, 1, 1))?;
    column_norms::scale(call, &copied, &powers, true)?;
    let sorted = matrices::empty(call, a.dtype, &a.sizes)?;
    let order = sorted_columns::sort(call, &norms, &call.empty(norms.dtype, &norms.sizes)?, true)?;
    sorted_columns::arrange(call, &matrices::flat(&copied), &matrices::flat(&sorted), &order)?;

    let (qr, tau) = qr::decompose(call, &sorted)?;
    let qr = matrices::flat(&qr);
    let l = matrices::empty(call, a.dtype, &[batch, n, n])?;
    copy_half(call, &part(&qr, (0, n), (0, n)), &transposed(&l), 0, Half::Upper)?;
    conjugate(call, &l)?;
    let columns = Columns::new(call, &l, &flags, vectors.is_some())?;
    if n > ROTATED_FIRST {
        columns.rotate(&nearly_right(call, &l, &flags)?)?;
    }
    columns.orthogonalise()?;

    let unsorted = column_norms::norms(call, &columns.columns())?;
    let places = sorted_columns::sort(call, &unsorted, values, true)?;
    column_norms::scale(call, values, &powers, false)?;
    let Some((left, right)) = vectors else { return Ok(()) };
    sorted_columns::arrange(call, &columns.rotations(), &part(&left, (0, n), (0, n)), &places)?;
    householder::apply(call, &qr, &tau, &left, false)?;
    polish(call, &left)?;

    let w = matrices::empty(call, a.dtype, &[batch, n, n])?;
    sorted_columns::arrange(call, &columns.columns(), &w, &places)?;
    let (qr, tau) = qr::decompose(call, &w)?;
    let qr = matrices::flat(&qr);
    let u = matrices::identity(call, a.dtype, &[batch, n, n])?;
    let spec = Signs { dtype: a.dtype, index: matrices::index_of(&[&qr, &u]) };
    let arguments = SignsArguments { r: &qr, signs: &u, strides: &u, numel: batch * n, n: n as u32 };
    call.run_threads(&spec, &arguments, (batch * n) as u64)?;
    householder::apply(call, &qr, &tau, &u, false)?;
    polish(call, &u)?;
    sorted_columns::restore(call, &transposed(&u), &transposed(&right), &order)
}

/// Columns from which on the eigenvectors of `L^H L` are found sooner than Jacobi's sweeps get as far.
const ROTATED_FIRST: i64 = 64;

/// The right singular vectors of `l`, `[batch, n, n]`, but for what squaring it loses: those of small singular values are all but orthogonal complements
/// of the others. Longer columns of the product with them come first. Waits for whether all numbers are finite.
fn nearly_right(call: &Call, l: &Tensor, flags: &Tensor) -> Result<Tensor> {
    let (batch, n) = (l.sizes[0], l.sizes[1]);
    one_sided_jacobi::check_finite(call, flags)?;
    let square = matrices::empty(call, l.dtype, &l.sizes)?;
    matrices::multiply(call, [&adjoint(l), l], &square, Into::Written)?;
    mirror(call, &square)?;
    let [values, sorted] = [(); 2].map(|()| call.empty(l.dtype.real(), &[batch, n]));
    let (values, v) = (values?, matrices::empty(call, l.dtype, &l.sizes)?);
    eigh::vectors_of(call, &square, &values, &v)?;
    let places = sorted_columns::sort(call, &values, &sorted?, true)?;
    sorted_columns::arrange(call, &v, &square, &places)?;
    Ok(square)
}

/// Writes the signs of a diagonal, whose numbers are real, to another. An invocation takes an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Signs {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Signs as s => SignsArguments, SignsParameters {
        r: InputElements = s.dtype,
        signs: OutputElements = s.dtype,
        /// Of both.
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
