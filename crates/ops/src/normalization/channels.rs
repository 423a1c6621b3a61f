//! Channels: dimension 1 of an input, which has one parameter for each of them.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::reduction::Axes;
use crate::tensor::memory_format::{self, is_channels_last};
use crate::tensor::{Dims, Tensor};

/// A row of one number a channel (dimension 1), as a view of the shape of `like`.
pub fn of_channels(row: &Tensor, like: &Tensor) -> Tensor {
    let mut strides = Dims::from_elem(0, like.dim());
    strides[1] = row.strides[0];
    row.as_strided(&like.sizes, &strides, 0)
}

/// Every dimension but that of channels.
pub fn all_but_channels(call: &Call, rank: usize) -> Result<Axes> {
    let dims: Dims = (0..rank as i64).filter(|&d| d != 1).collect();
    Axes::listed(call, &dims, rank, false)
}

/// Checks a row of one number a channel.
pub fn check_channels(name: &str, row: Option<&Tensor>, channels: i64) -> Result<()> {
    if let Some(row) = row {
        let n = row.numel();
        check!(row.dim() == 1 && n == channels, Runtime, "{name} should contain {channels} elements not {n}");
    }
    Ok(())
}

/// A new tensor of the input's dtype, shape and memory format.
pub fn like(call: &Call, input: &Tensor) -> Result<Tensor> {
    let strides = memory_format::strides(&input.sizes, is_channels_last(input));
    call.empty_strided(input.dtype, &input.sizes, &strides)
}
