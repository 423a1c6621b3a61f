//! The convolution that every module comes down to, and its gradients.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::winograd::choice::Pass;
use crate::convolution::{order, winograd};
use crate::error::Result;
use crate::view::{View, memory_format};
use dml_kernel::DType;

/// Whether operands whose channels are not the fastest in memory are first copied so that they are,
/// for these passes: Winograd's transforms read either order.
pub fn by_channels(cx: &Context, g: &Geometry, dtype: DType, passes: &[Pass]) -> Result<bool> {
    Ok(!passes.iter().all(|&pass| winograd::applies(cx, g, dtype, pass)) && order::by_channels(cx, g, dtype)?)
}

/// A new dense tensor of the wanted order.
pub fn empty(cx: &Context, like: &View, sizes: &[i64], last: bool) -> Result<View> {
    cx.empty_strided(like.dtype, sizes, &memory_format::strides(sizes, last))
}
