//! Products of complex matrices, as products of real ones of twice the size.
//!
//! A row of complex numbers in memory is a row of reals, `[re, im, re, im, ..]`. Where each number
//! `x + iy` of the right matrix stands as the block `[[x, y], [-y, x]]`, the product of the two
//! real matrices is the complex product as it lies in memory.

use crate::complex::functions::{BLOCKS, BLOCKS_CONJ};
use crate::complex::parts::{as_real, parts};
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::view::{Dims, View};

/// The rows, whose numbers lie one after another, as rows of `width` reals.
pub fn interleaved(t: &View, width: i64) -> View {
    let pairs = as_real(t);
    let rank = t.dim();
    let (mut sizes, mut strides) = (Dims::from_slice(&pairs.sizes[..rank]), Dims::from_slice(&pairs.strides[..rank]));
    (sizes[rank - 1], strides[rank - 1]) = (width, 1);
    pairs.as_strided(&sizes, &strides, 0)
}

/// The matrix `[.., k, n]`, whose conjugate bit counts, as `[.., 2k, 2n]` of blocks.
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
