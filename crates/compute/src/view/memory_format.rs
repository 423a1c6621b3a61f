//! Memory formats: the two memory orders of `[batch, channels, ..]` tensors.

use crate::view::layout::dense_strides;
use crate::view::{Dims, View};

/// Strides of a dense tensor with channels (dimension 1) innermost.
pub fn channels_last_strides(sizes: &[i64]) -> Dims {
    let mut order: Vec<usize> = (2..sizes.len()).rev().collect();
    order.insert(0, 1);
    order.push(0);
    dense_strides(sizes, &order)
}

/// Whether strides mean channels last, also for tensors whose sizes leave it open.
pub fn is_channels_last(t: &View) -> bool {
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

/// Strides of a dense tensor in the requested order.
pub fn strides(sizes: &[i64], last: bool) -> Dims {
    if last { channels_last_strides(sizes) } else { View::contiguous_strides(sizes) }
}
