//! The dimensions that a reduction folds, and the shape of its result.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::reduction::axes::Axes;

/// Exactly the dimensions listed; an empty list means no dimension.
pub fn axes_listed(call: &Call, dims: &[i64], rank: usize, keep: bool) -> Result<Axes> {
    check!(rank <= 64, Runtime, "only tensors with up to 64 dims are supported");
    let mut mask = 0;
    for &d in dims {
        let d = call.wrap_dim(d, rank)?;
        check!(mask >> d & 1 == 0, Runtime, "dim {d} appears multiple times in the list of dims");
        mask |= 1 << d;
    }
    Ok(Axes { mask, keep })
}

/// PyTorch's `dim` argument for a tensor of this rank: `None` or an empty list means every
/// dimension.
pub fn axes_of(call: &Call, dims: Option<&[i64]>, rank: usize, keep: bool) -> Result<Axes> {
    match dims {
        None | Some([]) => Ok(Axes::all(keep)),
        Some(dims) => axes_listed(call, dims, rank, keep),
    }
}
