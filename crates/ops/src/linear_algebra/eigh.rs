//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices by Jacobi's method with rotations of disjoint pairs at once.
//!
//! A round rotates every row and column with one other, reading one copy of the matrices and writing another, and a sweep of rounds meets every
//! pair. What is off the diagonal only ever becomes sums of what is off the diagonal: so it vanishes, in the end quadratically. After a sweep
//! the host asks whether it has.

use super::jacobi::{self, Remainder, RemainderArguments, Round, RoundArguments};
use super::matrices::{self, adjoint};
use super::sorted_columns;
use crate::movement::copy::{device_copy, fill_with, read_numbers};
use crate::operator::argument::Outs;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    eigh(A, UPLO, compute_v, outs) {
        "aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
        "aten::_linalg_eigh.eigenvalues(Tensor A, str UPLO=\"L\", bool compute_v=True, *, Tensor(a!) eigenvalues, Tensor(b!) eigenvectors) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)",
    }
}

/// Sweeps after which the method has failed; it needs about ten of the largest matrices.
const MAX_SWEEPS: usize = 40;

/// Eigenvalues in ascending order `[.., n]`, and eigenvectors in columns, of the triangle of `a` that `uplo` says.
fn eigh(call: &mut Call, a: &Tensor, uplo: Option<&str>, vectors: bool, outs: Outs) -> Result<()> {
    matrices::check_square(a, "linalg.eigh", "A")?;
    let uplo = uplo.unwrap_or("L");
    check!(matches!(uplo, "L" | "U" | "l" | "u"), Runtime, "Expected UPLO argument to be 'L' or 'U', but got {uplo}");
    matrices::check_kernels_of_elements(a, "linalg_eigh_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype.real())?;
    structured::check_given(given(1), a.dtype)?;
    let batch = matrices::batch_of(a);
    let n = a.size(-1);
    let values = call.empty(a.dtype.real(), &matrices::sizes_of(batch, &[n]))?;
    let q = if vectors { matrices::empty(call, a.dtype, &a.sizes)? } else { call.empty(a.dtype, &[0])? };
    if values.numel() > 0 {
        let lower = if uplo.eq_ignore_ascii_case("l") { a.clone() } else { adjoint(a) };
        let mut rotated = matrices::flat(&matrices::copied(call, &lower, &a.sizes)?);
        let mut basis = matrices::flat(&matrices::identity(call, a.dtype, &a.sizes)?);
        sweep(call, &mut rotated, &mut basis)?;
        let count = rotated.sizes[0];
        let (unsorted, sorted) = (call.empty(values.dtype, &[count, n])?, values.as_strided(&[count, n], &[n, 1], 0));
        let diagonal =
            rotated.as_strided(&[count, n], &[rotated.strides[0], rotated.strides[1] + rotated.strides[2]], 0);
        device_copy(call, &matrices::real_part(&diagonal), &unsorted)?;
        let places = sorted_columns::sort(call, &unsorted, &sorted, false)?;
        if vectors {
            sorted_columns::arrange(call, &basis, &matrices::flat(&q), &places)?;
        }
    }
    matrices::give(call, given(0), values)?;
    matrices::give(call, given(1), q)
}

/// Turns the lower triangle of `a` into a diagonal, and rotates the columns of `basis` with it.
fn sweep(call: &Call, a: &mut Tensor, basis: &mut Tensor) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    if n == 1 {
        return Ok(());
    }
    let mut next_a = matrices::empty(call, a.dtype, &[batch, n, n])?;
    let mut next_basis = matrices::empty(call, a.dtype, &[batch, n, n])?;
    let left = call.empty(DType::I32, &[1])?;
    let pairs = jacobi::pairs(n);
    let threads = pairs * (pairs + n) * batch;
    let index = index_type(threads.max(matrices::reach(a)));
    for _ in 0..MAX_SWEEPS {
        for round in 0..jacobi::rounds(n) {
            let arguments = RoundArguments {
                a,
                basis,
                next_a: &next_a,
                next_basis: &next_basis,
                strides: a,
                batch: batch as u32,
                n: n as u32,
                round: round as u32,
            };
            call.run_threads(&Round { dtype: a.dtype, index }, &arguments, threads as u64)?;
            std::mem::swap(a, &mut next_a);
            std::mem::swap(basis, &mut next_basis);
        }
        fill_with(call, &left, Number::Int(0))?;
        let arguments = RemainderArguments { a, left: &left, strides: a, batch: batch as u32, n: n as u32 };
        call.run(&Remainder { dtype: a.dtype, index }, &arguments, matrices::workgroups(batch, 1))?;
        let left: Vec<Number> = read_numbers(call, &left)?;
        if left.iter().all(|left| left.to_i64() == 0) {
            return Ok(());
        }
    }
    // Matrices of infinities or NaN: the CPU says so.
    Err(Error::Fallback(format!("{}: no convergence", call.name)))
}
