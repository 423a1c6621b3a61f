//! Channels: dimension 1 of an input, which has one parameter for each channel.

use crate::context::Context;
use crate::error::Result;
use crate::view::memory_format::{self, is_channels_last};
use crate::view::{Dims, View};

/// A vector with one number for each channel (dimension 1), as a view that broadcasts to the shape
/// of `like`.
pub fn of_channels(row: &View, like: &View) -> View {
    let mut strides = Dims::from_elem(0, like.dim());
    strides[1] = row.strides[0];
    row.as_strided(&like.sizes, &strides, 0)
}

/// Allocates a tensor with the input's dtype, shape and memory format.
pub fn like(cx: &Context, input: &View) -> Result<View> {
    let strides = memory_format::strides(&input.sizes, is_channels_last(input));
    cx.empty_strided(input.dtype, &input.sizes, &strides)
}
