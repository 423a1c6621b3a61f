//! The Cholesky decomposition `A = L L^H`: panels of columns, in them a kernel for the blocks on the diagonal and a triangular system for what is
//! below, and products to the right of them. Few rows are a launch of that kernel.

use super::cholesky_rows::{Rows, RowsArguments, most_rows};
use super::matrices::{self, Into, adjoint, conjugated, fill_with, part, transposed};
use super::triangular::{self, Triangle};
use crate::creation::triangle::{Half, copy_half};
use crate::movement::copy::read_numbers;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::operators;
use crate::tensor::Tensor;
use dml_kernel::DType;

operators! {
    cholesky_ex(self, upper, check_errors, outs) {
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        "aten::linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)",
    }
    cholesky(self, upper, out) {
        "aten::cholesky(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    cholesky_solve(self, A, upper) {
        "aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    }
    cholesky_inverse(self, upper, out) {
        "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky_inverse.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `info` is 0, or the order of the first leading minor that is not positive-definite.
fn cholesky_ex(call: &mut Call, a: &Tensor, upper: bool, check_errors: bool, outs: Outs) -> Result<()> {
    matrices::check_square(a, "linalg.cholesky", "A")?;
    matrices::check_floats(a, "linalg.cholesky")?;
    matrices::check_kernels_of_elements(a, "cholesky_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype)?;
    structured::check_given(given(1), DType::I32)?;
    let (l, info) = decomposed(call, a, upper)?;
    if check_errors {
        check_info(call, &info)?;
    }
    matrices::give(call, given(0), l)?;
    matrices::give(call, given(1), info)
}

fn cholesky(call: &mut Call, a: &Tensor, upper: bool, out: Out) -> Result<()> {
    matrices::check_square(a, "cholesky", "A")?;
    matrices::check_kernels_of_elements(a, "cholesky_cpu")?;
    let (l, info) = decomposed(call, a, upper)?;
    check_info(call, &info)?;
    matrices::give(call, out.given(), l)
}

/// Waits for a decomposition, and leaves one that failed to the CPU, which raises its error.
pub fn check_info(call: &Call, info: &Tensor) -> Result<()> {
    if info.numel() > 0 {
        let info: Vec<Number> = read_numbers(call, info)?;
        if info.iter().any(|info| info.to_i64() != 0) {
            return Err(Error::Fallback(format!("{}: a matrix that has no such decomposition", call.name)));
        }
    }
    Ok(())
}

/// The factor, zero in its other triangle, and `info`, of a new tensor each.
fn decomposed(call: &Call, a: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    let info = call.empty(DType::I32, matrices::batch_of(a))?;
    let turned = |t: Tensor| if upper { transposed(&t) } else { t };
    if a.numel() > 0 && a.size(-1) <= i64::from(matrices::block_rows(a.dtype)) {
        let l = matrices::empty(call, a.dtype, &a.sizes)?;
        let from = turned(matrices::readable(call, a, matrices::batch_of(a))?);
        factor_rows(call, &from, &turned(matrices::flat(&l)), &info, None)?;
        return Ok((l, info));
    }
    let l = matrices::copied(call, a, &a.sizes)?;
    if info.numel() > 0 {
        fill_with(call, &info, Number::Int(0))?;
    }
    if l.numel() > 0 {
        factor(call, &turned(matrices::flat(&l)), &info)?;
        copy_half(call, &l, &l, 0, if upper { Half::Upper } else { Half::Lower })?;
    }
    Ok((l, info))
}

/// From here on the two triangles of an update are told apart.
const UPDATE: i64 = 512;

/// Columns of a panel: within it columns are updated by each of its blocks, those to its right once by all of it.
const PANEL: i64 = 512;

/// Writes the factor over the lower triangle of `a`, `[batch, n, n]`. What is above is lost.
fn factor(call: &Call, a: &Tensor, info: &Tensor) -> Result<()> {
    let (n, rows) = (a.sizes[1], i64::from(most_rows(a.dtype)));
    for panel in (0..n).step_by(PANEL as usize) {
        let right = (panel + PANEL).min(n);
        for from in (panel..right).step_by(rows as usize) {
            let to = (from + rows).min(right);
            let (diagonal, below) = (part(a, (from, to), (from, to)), part(a, (to, n), (from, to)));
            factor_rows(call, &diagonal, &diagonal, info, Some(from))?;
            triangular::solve(call, &conjugated(&diagonal), &transposed(&below), Triangle::LOWER)?;
            let beside = part(a, (to, right), (from, to));
            matrices::multiply(call, [&below, &adjoint(&beside)], &part(a, (to, n), (to, right)), Into::Subtracted)?;
        }
        subtract_square(call, &part(a, (right, n), (panel, right)), &part(a, (right, n), (right, n)))?;
    }
    Ok(())
}

/// Writes the factor of `a`, `[batch, n, n]` of few rows, to `l`: of whole matrices, or of a block that begins at row `first`, in place.
fn factor_rows(call: &Call, a: &Tensor, l: &Tensor, info: &Tensor, first: Option<i64>) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let rows = matrices::rows_for(n);
    let whole = first.is_none();
    let spec = Rows { dtype: a.dtype, index: matrices::index_of(&[a, l]), rows, whole, conjugate: a.conjugate };
    let arguments = RowsArguments {
        a,
        l,
        info,
        a_strides: a,
        l_strides: l,
        batch: batch as u32,
        n: n as u32,
        first: first.unwrap_or(0) as u32,
    };
    let groups = matrices::groups_of(batch, matrices::matrices_together(rows));
    call.run(&spec, &arguments, matrices::workgroups(groups.into(), 1))
}

/// `c -= x @ x^H`, at least in the lower triangle.
fn subtract_square(call: &Call, x: &Tensor, c: &Tensor) -> Result<()> {
    let (n, k) = (x.sizes[1], x.sizes[2]);
    if n <= UPDATE {
        return matrices::multiply(call, [x, &adjoint(x)], c, Into::Subtracted);
    }
    let half = matrices::half(n, matrices::block_rows(c.dtype));
    let (above, below) = (part(x, (0, half), (0, k)), part(x, (half, n), (0, k)));
    subtract_square(call, &above, &part(c, (0, half), (0, half)))?;
    matrices::multiply(call, [&below, &adjoint(&above)], &part(c, (half, n), (0, half)), Into::Subtracted)?;
    subtract_square(call, &below, &part(c, (half, n), (half, n)))
}

/// Solves `A X = self`; `a` is the factor of A.
fn cholesky_solve(call: &mut Call, b: &Tensor, a: &Tensor, upper: bool) -> Result<()> {
    matrices::check_kernels(a, "cholesky_solve_cpu")?;
    let x = matrices::copied(call, b, &b.sizes)?;
    if x.numel() > 0 {
        let (l, flat) = (matrices::readable(call, a, matrices::batch_of(b))?, matrices::flat(&x));
        let l = if upper { adjoint(&l) } else { l };
        triangular::solve(call, &l, &flat, Triangle::LOWER)?;
        triangular::solve(call, &adjoint(&l), &flat, Triangle::UPPER)?;
    }
    call.ret(x);
    Ok(())
}

/// The inverse of A, of which `a` is the factor. Waits for it, as on CUDA: one with a zero on its diagonal is left to the CPU,
/// which raises its error.
fn cholesky_inverse(call: &mut Call, a: &Tensor, upper: bool, out: Out) -> Result<()> {
    matrices::check_square(a, "cholesky_inverse", "A")?;
    matrices::check_kernels(a, "cholesky_inverse_out_cpu")?;
    let inverse = matrices::empty(call, a.dtype, &a.sizes)?;
    if inverse.numel() > 0 {
        let l = matrices::readable(call, a, matrices::batch_of(a))?;
        if matrices::has_zero(call, &matrices::diagonal_of(&l))? {
            return Err(Error::Fallback(format!("{}: of a factor that has no inverse", call.name)));
        }
        let l = if upper { adjoint(&l) } else { l };
        let root = matrices::flat(&matrices::identity(call, a.dtype, &a.sizes)?);
        triangular::solve(call, &l, &root, Triangle::LOWER)?;
        matrices::multiply(call, [&adjoint(&root), &root], &matrices::flat(&inverse), Into::Written)?;
    }
    matrices::give(call, out.given(), inverse)
}
