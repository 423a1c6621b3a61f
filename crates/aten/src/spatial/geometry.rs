//! Images of one to three spatial dimensions, as used by pooling, resampling, padding and sampling.
//!
//! A tensor is `[batch, channels, spatial ...]` with its own strides; the batch may be missing.
//! Spatial dimensions are width, height and width, or depth, height and width. Results keep the
//! input's memory format.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use dml_compute::view::{View, memory_format};
use dml_kernel::DType;

/// A channels-last or row-major result: new, or the given `out=` argument.
pub fn result(call: &Call, given: Option<&View>, dtype: DType, sizes: &[i64], channels_last: bool) -> Result<View> {
    let strides = memory_format::strides(sizes, channels_last);
    structured::result_strided(call, given, dtype, sizes, || strides)
}

/// Checks that a tensor has dimension `d`, which may be negative. The error is an `IndexError`, as
/// for the CPU's access to the size.
pub fn check_dimension(t: &View, d: i64) -> Result<()> {
    let rank = t.dim() as i64;
    check!(rank > 0, Index, "Dimension specified as {d} but tensor has no dimensions");
    check!(
        (-rank..rank).contains(&d),
        Index,
        "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
        -rank,
        rank - 1
    );
    Ok(())
}
