//! Regions of images and their bins: `[regions, 5]`, each the number of an image and left, top,
//! right and bottom in units of `1 / scale` pixels. Along each axis a region is cut into equal
//! bins.

use crate::check;
use crate::operator::error::Result;
use dml_compute::detection::region::Grid;
use dml_compute::view::View;

/// The sizes of a result with this many channels.
///
/// # Errors
/// Where sizes are negative or too large.
pub fn result_sizes(grid: &Grid, rois: &View, channels: i64, name: &str) -> Result<[i64; 4]> {
    check_sizes(&grid.bins, name)?;
    check_sizes(&grid.image, name)?;
    Ok([rois.sizes[0], channels, grid.bins[0], grid.bins[1]])
}

/// Channels of the result of an operator whose bins have channels of their own.
///
/// # Errors
/// Where the input's `channels` are no multiple of the bins.
pub fn channels_by_position(grid: &Grid, channels: i64) -> Result<i64> {
    let bins = grid.bins[0] * grid.bins[1];
    check!(
        bins > 0 && channels % bins == 0,
        Runtime,
        "input channels must be a multiple of pooling height * pooling width"
    );
    Ok(channels / bins)
}

/// Checks what every operator on regions takes: `images` are images or their gradients.
pub fn check_operands(images: &View, regions: &View, name: &str) -> Result<()> {
    check!(images.dim() == 4, Runtime, "{name}: expected images of 4 dimensions, got {}D", images.dim());
    check!(
        regions.dim() == 2 && regions.sizes[1] == 5,
        Runtime,
        "rois must have shape as Tensor[K, 5], got {:?}",
        regions.sizes.as_slice()
    );
    check!(
        images.dtype == regions.dtype,
        Runtime,
        "{name}: input should have the same type as rois, got {} and {}",
        images.dtype,
        regions.dtype
    );
    check!(images.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", images.dtype);
    Ok(())
}

/// Checks the sizes of an operator's result or of the images: each fits an i32.
pub fn check_sizes(sizes: &[i64], name: &str) -> Result<()> {
    check!(
        sizes.iter().all(|&n| (0..i64::from(i32::MAX)).contains(&n)),
        Runtime,
        "{name}: sizes {sizes:?} are negative or too large"
    );
    Ok(())
}
