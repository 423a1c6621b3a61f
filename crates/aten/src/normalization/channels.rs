//! Channels: dimension 1 of an input, which has one parameter for each channel.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::reduction::axes::Axes;
use dml_compute::view::{Dims, View};

/// Every dimension except the channels.
pub fn non_channel_axes(call: &Call, rank: usize) -> Result<Axes> {
    let dims: Dims = (0..rank as i64).filter(|&d| d != 1).collect();
    crate::reduction::axes::axes_listed(call, &dims, rank, false)
}

/// Checks a vector with one number for each channel.
pub fn check_channels(name: &str, row: Option<&View>, channels: i64) -> Result<()> {
    if let Some(row) = row {
        let n = row.numel();
        check!(row.dim() == 1 && n == channels, Runtime, "{name} should contain {channels} elements not {n}");
    }
    Ok(())
}
