//! The Cholesky decomposition `A = L L^H`, blocked: each panel of columns is one launch of a
//! kernel, followed by matrix products that update the columns to its right: within a wide panel
//! after each panel, further right once after the wide panel. Matrices of few rows are one launch
//! of another kernel.

use crate::context::Context;
use crate::creation::triangle::{Half, copy_half};
use crate::error::Result;
use crate::linear_algebra::cholesky_panel::{self, Panel, PanelArguments};
use crate::linear_algebra::cholesky_rows::{Rows, RowsArguments};
use crate::linear_algebra::matrices::{self, Update, adjoint, device_copy, fill_with, part, transposed};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// The factor, with zeros in the other triangle, and `info`, both in new tensors.
pub fn decomposed(cx: &Context, a: &View, upper: bool) -> Result<(View, View)> {
    let mut info = cx.empty(DType::I32, matrices::batch_of(a))?;
    let turned = |t: View| if upper { transposed(&t) } else { t };
    if a.numel() > 0 && a.size(-1) <= i64::from(matrices::block_rows(a.dtype)) {
        let l = matrices::empty(cx, a.dtype, &a.sizes)?;
        let from = turned(matrices::to_contiguous_matrices(cx, a, matrices::batch_of(a))?);
        factor_rows(cx, &from, &turned(matrices::flat(&l)), &info)?;
        return Ok((l, info));
    }
    let l = matrices::copied(cx, a, &a.sizes)?;
    if info.numel() > 0 {
        fill_with(cx, &info, Number::Int(0))?;
    }
    if l.numel() > 0 {
        info = factor(cx, &turned(matrices::flat(&l)), info)?;
        copy_half(cx, &l, &l, 0, if upper { Half::Upper } else { Half::Lower })?;
    }
    Ok((l, info))
}

/// Minimum size from which an update computes the lower triangle only.
const UPDATE: i64 = 512;

/// Columns of a wide panel. Its columns are updated after each of its panels, the columns to its
/// right once, after all of them.
const WIDE_PANEL: i64 = 512;

/// Writes the factor over the lower triangle of `a`, `[batch, n, n]`. The upper triangle is
/// destroyed. `info` is zeros; its new values are returned.
fn factor(cx: &Context, a: &View, mut info: View) -> Result<View> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let columns = i64::from(cholesky_panel::columns(a.dtype));
    let count = (n as u64).div_ceil(columns as u64) as i64;
    // The diagonal blocks of the factor, which are copied to the matrix in the end: nothing to
    // their right or below reads them.
    let blocks = cx.empty(a.dtype, &[count, batch, columns, columns])?;
    let block = |from: i64, size: i64| {
        let (side, first) = (columns * columns, from / columns);
        blocks.as_strided(&[batch, size, size], &[side, 1, columns], first * batch * side)
    };
    let mut next = cx.empty(info.dtype, &info.sizes)?;
    for wide in (0..n).step_by(WIDE_PANEL as usize) {
        let right = (wide + WIDE_PANEL).min(n);
        for from in (wide..right).step_by(columns as usize) {
            let to = (from + columns).min(right);
            factor_panel(cx, &part(a, (from, n), (from, to)), &block(from, to - from), [&info, &next], from)?;
            std::mem::swap(&mut info, &mut next);
            let (below, adjacent) = (part(a, (to, n), (from, to)), part(a, (to, right), (from, to)));
            matrices::multiply(cx, [&below, &adjoint(&adjacent)], &part(a, (to, n), (to, right)), Update::Subtract)?;
        }
        subtract_square(cx, &part(a, (right, n), (wide, right)), &part(a, (right, n), (right, n)))?;
    }
    let whole = n / columns;
    if whole > 0 {
        let to_next = columns * (a.strides[1] + a.strides[2]);
        let strides = [to_next, a.strides[0], a.strides[2], a.strides[1]];
        let diagonal_blocks = a.as_strided(&[whole, batch, columns, columns], &strides, 0);
        device_copy(cx, &blocks.narrow(0, 0, whole), &diagonal_blocks)?;
    }
    let done = whole * columns;
    if done < n {
        device_copy(cx, &block(done, n - done), &part(a, (done, n), (done, n)))?;
    }
    Ok(info)
}

/// Computes columns of the factor from the panel `a`, `[batch, m, n]`, from row `first` of the
/// diagonal down: in place except for the diagonal block, which is written to `block`,
/// `[batch, n, n]`.
fn factor_panel(cx: &Context, a: &View, block: &View, [before, info]: [&View; 2], first: i64) -> Result<()> {
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
    let few_registers = cx.device.info().capabilities.has_few_registers();
    let spec = Panel { dtype: a.dtype, index: matrices::index_of(&[a, block]), few_registers };
    cx.run(&spec, &arguments, matrices::workgroups(batch, tiles))
}

/// Writes the factor of `a`, `[batch, n, n]` with few rows, to `l`.
fn factor_rows(cx: &Context, a: &View, l: &View, info: &View) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let rows = matrices::rows_for(n);
    let spec = Rows { dtype: a.dtype, index: matrices::index_of(&[a, l]), rows, conjugate: a.conjugate };
    let arguments = RowsArguments { a, l, info, a_strides: a, l_strides: l, batch: batch as u32, n: n as u32 };
    let groups = matrices::workgroups_for(batch, matrices::matrices_per_workgroup(rows));
    cx.run(&spec, &arguments, matrices::workgroups(groups.into(), 1))
}

/// `c -= x @ x^H`, in the lower triangle at least.
fn subtract_square(cx: &Context, x: &View, c: &View) -> Result<()> {
    let (n, k) = (x.sizes[1], x.sizes[2]);
    if n <= UPDATE {
        return matrices::multiply(cx, [x, &adjoint(x)], c, Update::Subtract);
    }
    let half = matrices::half(n, matrices::block_rows(c.dtype));
    let (above, below) = (part(x, (0, half), (0, k)), part(x, (half, n), (0, k)));
    subtract_square(cx, &above, &part(c, (0, half), (0, half)))?;
    matrices::multiply(cx, [&below, &adjoint(&above)], &part(c, (half, n), (0, half)), Update::Subtract)?;
    subtract_square(cx, &below, &part(c, (half, n), (half, n)))
}
