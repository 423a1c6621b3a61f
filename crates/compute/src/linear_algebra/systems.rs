//! Uses of LU decompositions: systems of equations, inverses, determinants.

use crate::context::Context;
use crate::creation::triangle::{Half, copy_half};
use crate::error::Result;
use crate::linear_algebra::lu::{self, Decomposed};
use crate::linear_algebra::matrices;
use crate::linear_algebra::permutation::{
    Determinant, DeterminantArguments, DiagonalOperation, Permutation, PermutationArguments, PermutationMatrix,
    PermutationMatrixArguments,
};
use crate::movement::copy::as_contiguous;
use crate::view::View;
use crate::view::layout::index_type;
use dml_kernel::DType;

/// Returns P, L and U as new tensors; those not requested are empty.
pub fn unpack(cx: &Context, lu: &View, pivots: &View, data: bool, permutation: bool) -> Result<[View; 3]> {
    let batch = matrices::batch_of(lu);
    let (m, n) = (lu.size(-2), lu.size(-1));
    let k = m.min(n);
    let p = if permutation {
        let p = cx.empty(lu.dtype, &matrices::sizes_of(batch, &[m, m]))?;
        if p.numel() > 0 {
            permute(cx, &as_contiguous(cx, pivots)?, &p, m)?;
        }
        p
    } else {
        cx.empty(lu.dtype, &[0])?
    };
    if !data {
        return Ok([p, cx.empty(lu.dtype, &[0])?, cx.empty(lu.dtype, &[0])?]);
    }
    let last = lu.dim() - 1;
    let l = cx.empty(lu.dtype, &matrices::sizes_of(batch, &[m, k]))?;
    let u = cx.empty(lu.dtype, &matrices::sizes_of(batch, &[k, n]))?;
    if l.numel() > 0 {
        matrices::copy_unit_lower(cx, &lu.narrow(last, 0, k), &l)?;
    }
    if u.numel() > 0 {
        copy_half(cx, &lu.narrow(last - 1, 0, k), &u, 0, Half::Upper)?;
    }
    Ok([p, l, u])
}

/// For each row of `P^T A` its row in A, int32 `[batch, rows]`. `pivots` are contiguous.
pub fn permutation(cx: &Context, pivots: &View, rows: i64) -> Result<View> {
    let batch: i64 = pivots.sizes[..pivots.dim() - 1].iter().product();
    let rows_of = cx.empty(DType::I32, &[batch, rows])?;
    let index = index_type(batch * rows);
    let arguments =
        PermutationArguments { pivots, rows_of: &rows_of, batch, rows: rows as u32, steps: pivots.size(-1) as u32 };
    cx.run_threads(&Permutation { index }, &arguments, batch as u64)?;
    Ok(rows_of)
}

/// Writes the permutation matrices of `pivots`, contiguous like `p`.
fn permute(cx: &Context, pivots: &View, p: &View, rows: i64) -> Result<()> {
    let rows_of = permutation(cx, pivots, rows)?;
    let index = index_type(p.numel());
    let arguments = PermutationMatrixArguments { rows_of: &rows_of, out: p, numel: p.numel(), rows: rows as u32 };
    cx.run_threads(&PermutationMatrix { dtype: p.dtype, index }, &arguments, p.numel() as u64)
}

/// Decomposes, and computes from the diagonals: returns the determinant or its sign, its logarithm,
/// LU and pivots. LU and pivots are of the transposed matrices if `a` is real and contiguous.
pub fn determinant(cx: &Context, a: &View, of: DiagonalOperation) -> Result<[View; 4]> {
    let turned = if a.is_contiguous() && !a.dtype.is_complex() { matrices::transposed(a) } else { a.clone() };
    let Decomposed { lu, pivots, .. } = lu::decompose(cx, &turned, true)?;
    let batch = matrices::batch_of(a);
    let [out, logarithm] = [cx.empty(a.dtype, batch)?, cx.empty(a.dtype.real(), batch)?];
    if out.numel() > 0 {
        let flat = matrices::flat(&lu);
        let spec = Determinant { dtype: a.dtype, index: matrices::index_of(&[&flat]), of };
        let arguments = DeterminantArguments {
            lu: &flat,
            strides: &flat,
            pivots: &pivots,
            out: &out,
            logarithm: &logarithm,
            batch: flat.sizes[0] as u32,
            n: flat.sizes[1] as u32,
        };
        cx.run_threads(&spec, &arguments, flat.sizes[0] as u64)?;
    }
    Ok([out, logarithm, lu, pivots])
}
