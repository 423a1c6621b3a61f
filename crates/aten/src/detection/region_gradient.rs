//! Gradients of images with respect to the bins of regions.
//!
//! The weight of a pixel in a bin is the product of a vertical and a horizontal weight. Both are
//! written first, as a small matrix for each region and axis. Then every pixel gathers from the
//! regions near it, in their order: a workgroup has a tile of pixels, and lists the regions that
//! overlap it. Nothing is scattered, so the sums are deterministic.

use crate::check;
use crate::detection::region::{check_operands, check_sizes, position_sensitive_channels};
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::detection::region::{Bins, Grid};
use dml_compute::detection::region_gradient::{Channels, gather};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

/// Returns the gradient `[batch, channels, height, width]` of the images. With `argmax` (int32, of
/// the result's shape: a row-major pixel index for each bin) each bin's gradient goes to that pixel
/// alone.
pub fn run(
    call: &mut Call,
    grad: &View,
    rois: &View,
    bins: Bins,
    grid: Grid,
    [batch, channels]: [i64; 2],
    by: Channels,
    argmax: Option<&View>,
) -> Result<()> {
    let name = call.name;
    check_operands(grad, rois, name)?;
    let sizes = [batch, channels, grid.image[0], grid.image[1]];
    check_sizes(&sizes, name)?;
    check_sizes(&grid.bins, name)?;
    let result_channels = if by == Channels::Same { channels } else { position_sensitive_channels(&grid, channels)? };
    let wanted = [rois.sizes[0], result_channels, grid.bins[0], grid.bins[1]];
    check!(
        grad.sizes.as_slice() == wanted && argmax.is_none_or(|t| t.sizes.as_slice() == wanted),
        Runtime,
        "{name}: expected a gradient of sizes {wanted:?}, got {:?}",
        grad.sizes.as_slice()
    );
    let of_region = if by == Channels::Same { grid.bins[0] * (1 + grid.bins[1]) } else { 1 };
    check_loop_iterations(call, rois.sizes[0] * (1 + of_region))?;
    let out = call.empty(grad.dtype, &sizes)?;
    if out.numel() > 0 {
        if grad.numel() == 0 {
            fill_with(call, &out, Number::Int(0))?;
        } else {
            let argmax = argmax.map(|t| as_contiguous(call, t)).transpose()?;
            let (grad, rois) = (as_contiguous(call, grad)?, as_contiguous(call, rois)?);
            gather(call, &grad, &rois, bins, grid, by, argmax.as_ref(), &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
