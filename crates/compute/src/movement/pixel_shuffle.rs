//! Rearranging pixels of `factor` by `factor` blocks into channels and back (Shi et al., "Real-time
//! single image and video super-resolution using an efficient sub-pixel convolutional neural
//! network", 2016).

use crate::context::Context;
use crate::error::Result;
use crate::view::View;
use crate::view::memory_format::{self, is_channels_last};

/// Allocates a tensor like `t` whose last three sizes are `last`.
pub fn result(cx: &Context, t: &View, last: [i64; 3]) -> Result<View> {
    let mut sizes = t.sizes.clone();
    sizes.truncate(t.dim() - 3);
    sizes.extend(last);
    cx.empty_strided(t.dtype, &sizes, &memory_format::strides(&sizes, is_channels_last(t)))
}

/// A view `[.., channels, row of block, column of block, height, width]` of a tensor whose channels
/// are the pixels of blocks.
pub fn blocks_as_channels(t: &View, factor: i64) -> View {
    let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
    let d = t.dim() - 3;
    let step = t.strides[d];
    sizes[d] /= factor * factor;
    strides[d] = step * factor * factor;
    for (i, stride) in [step * factor, step].into_iter().enumerate() {
        sizes.insert(d + 1 + i, factor);
        strides.insert(d + 1 + i, stride);
    }
    t.as_strided(&sizes, &strides, 0)
}

/// The same view of images whose pixels are arranged in blocks.
pub fn blocks_in_image(t: &View, factor: i64) -> View {
    let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
    let d = t.dim() - 2;
    for i in [0, 1] {
        sizes[d + 2 * i] /= factor;
        let step = strides[d + 2 * i];
        strides[d + 2 * i] = step * factor;
        sizes.insert(d + i, factor);
        strides.insert(d + i, step);
    }
    t.as_strided(&sizes, &strides, 0)
}
