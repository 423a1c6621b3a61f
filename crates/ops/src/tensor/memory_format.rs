//! Memory formats: which of two orders the dimensions of `[batch, channels, ..]` tensors have in memory.

use crate::movement::copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::layout::dense_strides;
use crate::tensor::{Dims, Tensor};

/// Strides of a dense tensor whose channels (dimension 1) are the fastest.
pub fn channels_last_strides(sizes: &[i64]) -> Dims {
    let mut order: Vec<usize> = (2..sizes.len()).rev().collect();
    order.insert(0, 1);
    order.push(0);
    dense_strides(sizes, &order)
}

/// Whether strides say that channels are the fastest; PyTorch's rule for tensors whose sizes leave it open.
pub fn is_channels_last(t: &Tensor) -> bool {
    if !matches!(t.dim(), 4 | 5) || t.strides[1] == 0 || t.sizes.contains(&0) {
        return false;
    }
    let mut least = 0;
    for d in [1].into_iter().chain((2..t.dim()).rev()) {
        if t.strides[d] < least {
            return false;
        }
        least = t.strides[d] * t.sizes[d];
    }
    t.strides[0] >= least && least != t.strides[1]
}

/// Strides of a dense tensor of the wanted order.
pub fn strides(sizes: &[i64], last: bool) -> Dims {
    if last { channels_last_strides(sizes) } else { Tensor::contiguous_strides(sizes) }
}

/// The tensor with dense memory of the wanted order; a copy if it has not.
pub fn dense(call: &Call, t: &Tensor, last: bool) -> Result<Tensor> {
    let strides = strides(&t.sizes, last);
    let fits = t.sizes.iter().zip(&t.strides).zip(&strides).all(|((&n, s), want)| n == 1 || s == want);
    if fits {
        // Strides of dimensions of size 1 are anything: the canonical ones let dimensions merge.
        return Ok(t.as_strided(&t.sizes, &strides, 0));
    }
    let copy = call.empty_strided(t.dtype, &t.sizes, &strides)?;
    copy::device_copy(call, t, &copy)?;
    Ok(copy)
}
