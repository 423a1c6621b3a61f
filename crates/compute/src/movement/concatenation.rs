//! Concatenation of tensors along a dimension.

use crate::view::memory_format::{self, is_channels_last};
use crate::view::{Dims, View};

/// The result's strides: channels-last if every input is, else row-major.
pub fn strides_of_result(inputs: &[&View], sizes: &[i64]) -> Dims {
    let last = inputs.iter().all(|t| t.dim() == sizes.len() && is_channels_last(t));
    memory_format::strides(sizes, last)
}
