//! Decompositions of matrices, and what is computed by them.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{INDICES, MATRICES};
use crate::operators::common::elementwise::broadcast;
use crate::require;
use dml_compute::complex;
use dml_compute::creation::triangle::{Half, copy_half};
use dml_compute::linear_algebra::lu::{self, Decomposed};
use dml_compute::linear_algebra::matrices::{self, adjoint, batch_of, flat, sizes_of};
use dml_compute::linear_algebra::permutation::DiagonalOperation;
use dml_compute::linear_algebra::triangular::{self, Triangle};
use dml_compute::linear_algebra::{cholesky, column_norms, eigh, qr, svd, systems, tridiagonal};
use dml_compute::movement::copy::{self, read_numbers};
use dml_compute::{Context, Dims, Scalar, View};
use dml_kernel::DType;

/// An input of square matrices.
fn square(call: &Call, input: usize) -> Result<View> {
    let a = matrix(call, input)?;
    require!(a.size(-1) == a.size(-2), "Input matrix must be square, got shape {:?}", a.sizes);
    Ok(a)
}

/// An input of matrices.
fn matrix(call: &Call, input: usize) -> Result<View> {
    let a = call.input(input)?;
    require!(a.dim() >= 2, "Input must have rank >= 2, got {}", a.dim());
    Ok(a)
}

/// Copies to a result, converting real numbers to complex ones if that is its dtype.
fn write(cx: &Context, from: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if from.dtype != out.dtype {
        return Ok(complex::device_copy(cx, from, out)?);
    }
    Ok(matrices::device_copy(cx, from, out)?)
}

/// Copies to a new result.
fn return_result(call: &Call, output: usize, from: &View) -> Result<()> {
    write(&call.cx(), from, &call.output(output, &from.sizes)?)
}

/// Waits for a decomposition, and fails with a message if one of the matrices has none.
fn check(cx: &Context, info: &View, message: &str) -> Result<()> {
    if info.numel() > 0 {
        let info: Vec<Scalar> = read_numbers(cx, info)?;
        require!(info.iter().all(|info| info.to_i64() == 0), "{message}");
    }
    Ok(())
}

const SINGULAR: &str = "Input matrix is not invertible.";

/// `Cholesky`: NaN for a matrix that is not positive-definite, as on the CPU.
fn cholesky_of(call: &Call) -> Result<()> {
    let cx = call.cx();
    let a = square(call, 0)?;
    let (l, info) = cholesky::decomposed(&cx, &a, false)?;
    if l.numel() > 0 {
        let info: Vec<Scalar> = read_numbers(&cx, &info)?;
        let all = flat(&l);
        for (i, _) in info.iter().enumerate().filter(|(_, info)| info.to_i64() != 0) {
            let failed = all.narrow(0, i as i64, 1);
            matrices::fill_with(&cx, &failed, Scalar::Double(f64::NAN))?;
            copy_half(&cx, &failed, &failed, 0, Half::Lower)?;
        }
    }
    return_result(call, 0, &l)
}

/// `MatrixInverse`.
fn inverse(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let of_adjoint = attributes.bool("adjoint")?;
    Ok(move |call: &Call| {
        let cx = call.cx();
        let a = square(call, 0)?;
        let Decomposed { lu, pivots, info } = lu::decompose(&cx, &a, true)?;
        check(&cx, &info, "Input is not invertible.")?;
        let inverse = matrices::identity(&cx, a.dtype, &a.sizes)?;
        if inverse.numel() > 0 {
            lu::solve(&cx, &flat(&lu), &pivots, &flat(&inverse), false)?;
        }
        return_result(call, 0, &if of_adjoint { adjoint(&inverse) } else { inverse })
    })
}

/// `MatrixSolve`.
fn solve(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let of_adjoint = attributes.bool("adjoint")?;
    Ok(move |call: &Call| {
        let cx = call.cx();
        let (a, b) = (square(call, 0)?, matrix(call, 1)?);
        require!(
            batch_of(&a) == batch_of(&b) && a.size(-1) == b.size(-2),
            "Input matrix and rhs must have the same batch and the same number of rows: {:?} vs. {:?}",
            a.sizes,
            b.sizes
        );
        let a = if of_adjoint && a.numel() > 0 { matrices::copied(&cx, &adjoint(&a), &a.sizes)? } else { a };
        let Decomposed { lu, pivots, info } = lu::decompose(&cx, &a, true)?;
        check(&cx, &info, SINGULAR)?;
        let x = matrices::copied(&cx, &b, &b.sizes)?;
        if x.numel() > 0 {
            lu::solve(&cx, &flat(&lu), &pivots, &flat(&x), false)?;
        }
        return_result(call, 0, &x)
    })
}

/// `MatrixTriangularSolve`. A zero on the diagonal gives infinities, as on CUDA.
fn triangular_solve(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [lower, of_adjoint] = [attributes.bool("lower")?, attributes.bool("adjoint")?];
    Ok(move |call: &Call| {
        let cx = call.cx();
        let (a, b) = (square(call, 0)?, matrix(call, 1)?);
        require!(
            a.size(-1) == b.size(-2),
            "Input matrix and rhs must have the same number of rows: {:?} vs. {:?}",
            a.sizes,
            b.sizes
        );
        let batch = broadcast(call.operator(), batch_of(&a), batch_of(&b))?;
        let x = matrices::copied(&cx, &b, &sizes_of(&batch, &[b.size(-2), b.size(-1)]))?;
        if x.numel() > 0 {
            let a = if of_adjoint { adjoint(&a) } else { a };
            let a = matrices::to_contiguous_matrices(&cx, &a, &batch)?;
            triangular::solve(&cx, &a, &flat(&x), Triangle { upper: lower == of_adjoint, unit: false })?;
        }
        return_result(call, 0, &x)
    })
}

/// `MatrixDeterminant`.
fn determinant(call: &Call) -> Result<()> {
    let a = square(call, 0)?;
    let [out, ..] = systems::determinant(&call.cx(), &a, DiagonalOperation::Determinant)?;
    return_result(call, 0, &out)
}

/// `LogMatrixDeterminant`: sign and logarithm, which is of the matrices' dtype even if that is
/// complex.
fn log_determinant(call: &Call) -> Result<()> {
    let a = square(call, 0)?;
    let [sign, logarithm, ..] = systems::determinant(&call.cx(), &a, DiagonalOperation::Logarithm)?;
    return_result(call, 0, &sign)?;
    return_result(call, 1, &logarithm)
}

/// `Lu`: both factors in one matrix, and the row of the input that is in each row of their product.
fn lu_of(call: &Call) -> Result<()> {
    let cx = call.cx();
    let a = square(call, 0)?;
    let Decomposed { lu, pivots, info } = lu::decompose(&cx, &a, true)?;
    check(&cx, &info, SINGULAR)?;
    return_result(call, 0, &lu)?;
    let out = call.output(1, &sizes_of(batch_of(&a), &[a.size(-1)]))?;
    if out.numel() == 0 {
        return Ok(());
    }
    let rows = systems::permutation(&cx, &pivots, a.size(-1))?;
    Ok(copy::device_copy(&cx, &rows, &out.as_strided(&rows.sizes, &rows.strides, 0))?)
}

/// `Qr`.
fn qr_of(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let full = attributes.bool("full_matrices")?;
    Ok(move |call: &Call| {
        let cx = call.cx();
        let a = matrix(call, 0)?;
        let (m, n) = (a.size(-2), a.size(-1));
        let k = if full { m } else { m.min(n) };
        let (reflections, tau) = qr::decompose(&cx, &a)?;
        let r = call.output(1, &sizes_of(batch_of(&a), &[k, n]))?;
        if r.numel() > 0 {
            copy_half(&cx, &reflections.narrow(a.dim() - 2, 0, k), &r, 0, Half::Upper)?;
        }
        return_result(call, 0, &qr::orthogonal(&cx, &reflections, &tau, k)?)
    })
}

/// `Svd`: singular values, U, and V, which is not transposed.
fn svd_of(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [vectors, full] = [attributes.bool("compute_uv")?, attributes.bool("full_matrices")?];
    Ok(move |call: &Call| {
        let a = matrix(call, 0)?;
        let [u, values, vh] = svd::decomposed(&call.cx(), &a, full, vectors)?;
        return_result(call, 0, &values)?;
        if !vectors {
            let empty = [0].as_slice();
            call.output(1, empty)?;
            call.output(2, empty)?;
            return Ok(());
        }
        return_result(call, 1, &u)?;
        return_result(call, 2, &adjoint(&vh))
    })
}

/// `SelfAdjointEigV2`, of the lower triangles: eigenvalues, of the matrices' dtype even if that is
/// complex, and vectors.
fn eigh_of(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let vectors = attributes.bool("compute_v")?;
    Ok(move |call: &Call| {
        let cx = call.cx();
        let a = square(call, 0)?;
        let n = a.size(-1);
        let values = cx.empty(a.dtype.real(), &sizes_of(batch_of(&a), &[n]))?;
        let q = matrices::empty(&cx, a.dtype, &a.sizes)?;
        if values.numel() > 0 {
            let whole = flat(&matrices::copied(&cx, &a, &a.sizes)?);
            tridiagonal::mirror(&cx, &whole)?;
            let powers = scaled(&cx, &whole)?;
            let rows = values.as_strided(&[whole.sizes[0], n], &[n, 1], 0);
            if vectors {
                eigh::vectors_of(&cx, &whole, &rows, &flat(&q))?;
            } else {
                eigh::values_of(&cx, &whole, &rows)?;
            }
            column_norms::scale(&cx, &rows, &powers, false)?;
        }
        return_result(call, 0, &values)?;
        if vectors {
            return return_result(call, 1, &q);
        }
        call.output(1, &Dims::from_slice(&[0])).map(|_| ())
    })
}

/// Divides matrices in place by powers of two, so that their norms are of the order of one.
fn scaled(cx: &Context, a: &View) -> Result<View> {
    let failed = cx.empty(DType::I32, &[1])?;
    copy::fill_with(cx, &failed, Scalar::Int(0))?;
    let extents = column_norms::extents(cx, a)?;
    let powers = column_norms::powers(cx, &extents, &failed)?;
    column_norms::scale(cx, a, &powers, true)?;
    check(cx, &failed, "Self-adjoint eigen decomposition was not successful. The input might not be valid.")?;
    Ok(powers)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let matrices = |operator: Operator| operator.of("T", MATRICES);
    vec![
        matrices(Operator::plain("Cholesky", cholesky_of)),
        matrices(Operator::new("MatrixInverse", inverse)),
        matrices(Operator::new("MatrixSolve", solve)),
        matrices(Operator::new("MatrixTriangularSolve", triangular_solve)),
        matrices(Operator::new("BatchMatrixTriangularSolve", triangular_solve)),
        matrices(Operator::plain("MatrixDeterminant", determinant)),
        matrices(Operator::plain("LogMatrixDeterminant", log_determinant)),
        matrices(Operator::plain("Lu", lu_of)).of("output_idx_type", INDICES),
        matrices(Operator::new("Qr", qr_of)),
        matrices(Operator::new("Svd", svd_of)),
        matrices(Operator::new("BatchSvd", svd_of)),
        matrices(Operator::new("SelfAdjointEigV2", eigh_of)),
    ]
}
