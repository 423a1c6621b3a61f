//! Regions of images and their bins: `[regions, 5]`, each the index of an image and left, top,
//! right and bottom in units of `1 / scale` pixels. Along each axis a region is divided into bins
//! of equal size.

use crate::operator::error::Result;
use crate::{check, group};
use dml_compute::detection::region::Grid;
use dml_compute::view::View;

group! {
    /// The bins that regions are pooled to.
    pub struct Pooled {
        spatial_scale: f64,
        pooled_height: i64,
        pooled_width: i64,
    }
}

group! {
    /// The sizes of the images of a gradient.
    pub struct Images {
        batch_size: i64,
        channels: i64,
        height: i64,
        width: i64,
    }
}

impl Pooled {
    /// The bins, of images `[height, width]`; `samples` as in [`Grid::samples`].
    pub fn grid(&self, image: [i64; 2], samples: i64) -> Grid {
        Grid { scale: self.spatial_scale, image, bins: [self.pooled_height, self.pooled_width], samples }
    }
}

/// The sizes of a result with `channels` channels.
///
/// # Errors
/// If sizes are negative or too large.
pub fn result_sizes(grid: &Grid, rois: &View, channels: i64, name: &str) -> Result<[i64; 4]> {
    check_sizes(&grid.bins, name)?;
    check_sizes(&grid.image, name)?;
    Ok([rois.sizes[0], channels, grid.bins[0], grid.bins[1]])
}

/// Channels of the result of an operator with separate channels for each bin.
///
/// # Errors
/// If the input's `channels` are not a multiple of the bins.
pub fn position_sensitive_channels(grid: &Grid, channels: i64) -> Result<i64> {
    let bins = grid.bins[0] * grid.bins[1];
    check!(
        bins > 0 && channels % bins == 0,
        Runtime,
        "input channels must be a multiple of pooling height * pooling width"
    );
    Ok(channels / bins)
}

/// Checks the operands that all operators on regions share: `images` are images or their gradients.
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

/// Checks that the sizes of an operator's result or of the images fit i32.
pub fn check_sizes(sizes: &[i64], name: &str) -> Result<()> {
    check!(
        sizes.iter().all(|&n| (0..i64::from(i32::MAX)).contains(&n)),
        Runtime,
        "{name}: sizes {sizes:?} are negative or too large"
    );
    Ok(())
}
