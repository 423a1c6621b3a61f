//! Axes of operators: numbers of dimensions, which count from the end if negative.

use crate::error::Result;
use crate::require;
use dml_compute::reduction::Axes;

/// The dimension that an axis of a tensor with `rank` dimensions means.
pub fn dimension(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// The dimensions of a reduction.
pub fn reduced(axes: &[i64], rank: usize, keep: bool) -> Result<Axes> {
    let mut mask = 0u64;
    for &axis in axes {
        let found = dimension(axis, rank);
        require!(found.is_some(), "Invalid reduction dimension ({axis} for input with {rank} dimension(s)");
        let bit = 1 << found.unwrap_or(0);
        require!(mask & bit == 0, "Invalid reduction arguments: Axes contains duplicate dimension: {axis}");
        mask |= bit;
    }
    Ok(Axes { mask, keep })
}
