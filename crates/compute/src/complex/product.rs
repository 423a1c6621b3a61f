//! Products of complex matrices, as products of real matrices of twice the size.
//!
//! A row of complex numbers is in memory a row of reals, `[re, im, re, im, ..]`. If every number
//! `x + iy` of the right matrix is replaced by the block `[[x, y], [-y, x]]`, the product of the
//! two real matrices is in memory the complex product.

use crate::complex::functions::{BLOCKS, BLOCKS_CONJ};
use crate::complex::parts::{as_real, parts};
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::view::{Dims, View};

/// A matrix with contiguous rows as a real matrix with rows of `width` elements.
pub fn interleaved(t: &View, width: i64) -> View {
    let pairs = as_real(t);
    let rank = t.dim();
    let (mut sizes, mut strides) = (Dims::from_slice(&pairs.sizes[..rank]), Dims::from_slice(&pairs.strides[..rank]));
    (sizes[rank - 1], strides[rank - 1]) = (width, 1);
    pairs.as_strided(&sizes, &strides, 0)
}

/// The right matrix `[.., k, n]` as the real matrix `[.., 2k, 2n]` of blocks. Its conjugate bit is
/// respected.
pub fn blocks(cx: &Context, b: &View, [k, n]: [i64; 2]) -> Result<View> {
    let rank = b.dim();
    let mut sizes = b.sizes.clone();
    (sizes[rank - 2], sizes[rank - 1]) = (2 * k, 2 * n);
    let all = cx.empty(b.dtype.real(), &sizes)?;
    let mut strides = all.strides.clone();
    (strides[rank - 2], strides[rank - 1]) = (4 * n, 2);
    let corner = |row: i64, column: i64| all.as_strided(&b.sizes, &strides, row * 2 * n + column);
    let outs = [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)];
    let inputs = parts(b).map(Input::Tensor);
    let function = if b.conjugate { &BLOCKS_CONJ } else { &BLOCKS };
    let outs = [&outs[0], &outs[1], &outs[2], &outs[3]];
    kernel::run(cx, function, &outs, &inputs, b.dtype.real())?;
    Ok(all)
}
