//! The convolution to which all modules are reduced, and its gradients.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::winograd::choice::Pass;
use crate::convolution::{order, winograd};
use crate::error::Result;
use crate::view::{View, memory_format};
use dml_kernel::DType;

/// Whether operands in channels-first order are first copied to channels-last order for these
/// passes. Winograd's transforms read either order.
pub fn by_channels(cx: &Context, g: &Geometry, dtype: DType, passes: &[Pass]) -> Result<bool> {
    Ok(!passes.iter().all(|&pass| winograd::is_supported(cx, g, dtype, pass)) && order::by_channels(cx, g, dtype)?)
}

/// Allocates a dense tensor: channels last if `last` is set, else channels first.
pub fn empty(cx: &Context, like: &View, sizes: &[i64], last: bool) -> Result<View> {
    cx.empty_strided(like.dtype, sizes, &memory_format::strides(sizes, last))
}
