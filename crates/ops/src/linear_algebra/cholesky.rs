//! The Cholesky decomposition `A = L L^H`: panels of columns, a launch of a kernel each, and products to the right of them: in a wide panel by each,
//! to the right of that by all of it. Few rows are a launch of another kernel.

use super::cholesky_panel::{self, Panel, PanelArguments};
use super::cholesky_rows::{Rows, RowsArguments};
use super::matrices::{self, Into, adjoint, device_copy, fill_with, part, transposed};
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
    let mut info = call.empty(DType::I32, matrices::batch_of(a))?;
    let turned = |t: Tensor| if upper { transposed(&t) } else { t };
    if a.numel() > 0 && a.size(-1) <= i64::from(matrices::block_rows(a.dtype)) {
        let l = matrices::empty(call, a.dtype, &a.sizes)?;
        let from = turned(matrices::readable(call, a, matrices::batch_of(a))?);
        factor_rows(call, &from, &turned(matrices::flat(&l)), &info)?;
        return Ok((l, info));
    }
    let l = matrices::copied(call, a, &a.sizes)?;
    if info.numel() > 0 {
        fill_with(call, &info, Number::Int(0))?;
    }
    if l.numel() > 0 {
        info = factor(call, &turned(matrices::flat(&l)), info)?;
        copy_half(call, &l, &l, 0, if upper { Half::Upper } else { Half::Lower })?;
    }
    Ok((l, info))
}

/// From here on the two triangles of an update are told apart.
const UPDATE: i64 = 512;

/// Columns of a wide panel: within it columns are updated by each of its panels, those to its right once by all of it.
const WIDE: i64 = 512;

/// Writes the factor over the lower triangle of `a`, `[batch, n, n]`. What is above is lost. `info` is zeros; gives what it becomes.
fn factor(call: &Call, a: &Tensor, mut info: Tensor) -> Result<Tensor> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let columns = i64::from(cholesky_panel::columns(a.dtype));
    let count = (n as u64).div_ceil(columns as u64) as i64;
    // The blocks on the diagonal, which go to their places in the end: nothing to their right or below reads them.
    let blocks = call.empty(a.dtype, &[count, batch, columns, columns])?;
    let block = |from: i64, size: i64| {
        let (side, first) = (columns * columns, from / columns);
        blocks.as_strided(&[batch, size, size], &[side, 1, columns], first * batch * side)
    };
    let mut next = call.empty(info.dtype, &info.sizes)?;
    for wide in (0..n).step_by(WIDE as usize) {
        let right = (wide + WIDE).min(n);
        for from in (wide..right).step_by(columns as usize) {
            let to = (from + columns).min(right);
            factor_panel(call, &part(a, (from, n), (from, to)), &block(from, to - from), [&info, &next], from)?;
            std::mem::swap(&mut info, &mut next);
            let (below, beside) = (part(a, (to, n), (from, to)), part(a, (to, right), (from, to)));
            matrices::multiply(call, [&below, &adjoint(&beside)], &part(a, (to, n), (to, right)), Into::Subtracted)?;
        }
        subtract_square(call, &part(a, (right, n), (wide, right)), &part(a, (right, n), (right, n)))?;
    }
    let whole = n / columns;
    if whole > 0 {
        let to_next = columns * (a.strides[1] + a.strides[2]);
        let strides = [to_next, a.strides[0], a.strides[2], a.strides[1]];
        let places = a.as_strided(&[whole, batch, columns, columns], &strides, 0);
        device_copy(call, &blocks.narrow(0, 0, whole), &places)?;
    }
    let done = whole * columns;
    if done < n {
        device_copy(call, &block(done, n - done), &part(a, (done, n), (done, n)))?;
    }
    Ok(info)
}

/// Makes columns of the factor of the panel `a`, `[batch, m, n]` from row `first` of the diagonal down: in place but for the block on the diagonal,
/// `[batch, n, n]`.
fn factor_panel(call: &Call, a: &Tensor, block: &Tensor, [before, info]: [&Tensor; 2], first: i64) -> Result<()> {
    let [batch, m, n] = [a.sizes[0], a.sizes[1], a.sizes[2]];
    let tiles = ((m - n) as u64).div_ceil(cholesky_panel::columns(a.dtype).into()).max(1) as i64;
    let arguments = PanelArguments {
        a,
        block,
        before,
        info,
        a_strides: a,
        block_strides: block,
        batch: batch as u32,
        m: m as u32,
        n: n as u32,
        first: first as u32,
        tiles: tiles as u32,
    };
    let spec = Panel { dtype: a.dtype, index: matrices::index_of(&[a, block]) };
    call.run(&spec, &arguments, matrices::workgroups(batch, tiles))
}

/// Writes the factor of `a`, `[batch, n, n]` of few rows, to `l`.
fn factor_rows(call: &Call, a: &Tensor, l: &Tensor, info: &Tensor) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let rows = matrices::rows_for(n);
    let spec = Rows { dtype: a.dtype, index: matrices::index_of(&[a, l]), rows, conjugate: a.conjugate };
    let arguments = RowsArguments { a, l, info, a_strides: a, l_strides: l, batch: batch as u32, n: n as u32 };
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
