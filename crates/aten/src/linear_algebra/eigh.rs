//! The operators of eigenvalues and eigenvectors of symmetric and Hermitian matrices, which
//! [`dml_compute::linear_algebra::eigh`] computes.

use crate::linear_algebra::arguments;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::linear_algebra::eigh::{values_of, vectors_of};
use dml_compute::linear_algebra::matrices::{self, adjoint};
use dml_compute::linear_algebra::{column_norms, tridiagonal};
use dml_compute::movement::copy::{self, read_numbers};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    eigh(A, UPLO, compute_v, outs).complex(Complex::Own) {
        "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
        "aten::_linalg_eigh.eigenvalues(Tensor A, str UPLO=\"L\", bool compute_v=True, *, Tensor(a!) eigenvalues, Tensor(b!) eigenvectors) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)",
    }
}

/// Returns eigenvalues in ascending order `[.., n]`, and eigenvectors as columns, of the triangle
/// of `a` that `uplo` names.
fn eigh(call: &mut Call, a: &View, uplo: Option<&str>, vectors: bool, outs: Outs) -> Result<()> {
    arguments::check_square(a, "linalg.eigh", "A")?;
    let uplo = uplo.unwrap_or("L");
    check!(matches!(uplo, "L" | "U" | "l" | "u"), Runtime, "Expected UPLO argument to be 'L' or 'U', but got {uplo}");
    arguments::check_kernels_of_elements(a, "linalg_eigh_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype.real())?;
    structured::check_given(given(1), a.dtype)?;
    let batch = matrices::batch_of(a);
    let n = a.size(-1);
    let values = call.empty(a.dtype.real(), &matrices::sizes_of(batch, &[n]))?;
    let q = if vectors { matrices::empty(call, a.dtype, &a.sizes)? } else { call.empty(a.dtype, &[0])? };
    if values.numel() > 0 {
        let lower = if uplo.eq_ignore_ascii_case("l") { a.clone() } else { adjoint(a) };
        let whole = matrices::flat(&matrices::copied(call, &lower, &a.sizes)?);
        tridiagonal::mirror(call, &whole)?;
        let powers = scaled(call, &whole)?;
        let flat = values.as_strided(&[whole.sizes[0], n], &[n, 1], 0);
        if vectors {
            vectors_of(call, &whole, &flat, &matrices::flat(&q))?;
        } else {
            values_of(call, &whole, &flat)?;
        }
        column_norms::scale(call, &flat, &powers, false)?;
    }
    arguments::return_result(call, given(0), values)?;
    arguments::return_result(call, given(1), q)
}

/// Divides matrices in place by powers of two, `[batch]`, so that their norms are between one and
/// twice the root of their number of rows. Reads back whether they are finite.
fn scaled(call: &Call, a: &View) -> Result<View> {
    let failed = call.empty(DType::I32, &[1])?;
    copy::fill_with(call, &failed, Number::Int(0))?;
    let extents = column_norms::extents(call, a)?;
    let powers = column_norms::powers(call, &extents, &failed)?;
    column_norms::scale(call, a, &powers, true)?;
    let failed: Vec<Number> = read_numbers(call, &failed)?;
    if failed.iter().any(|failed| failed.to_i64() != 0) {
        // The CPU raises its error for these.
        return Err(Error::Fallback(format!("{}: numbers that are not finite", call.name)));
    }
    Ok(powers)
}
