//! Convolutions in which every channel is a separate group, with one filter (depthwise).
//!
//! As a matrix product such a convolution has one row, and reads every element as often as the
//! window has taps. Here an invocation computes several [adjacent positions](axis::Tile) instead,
//! so that each loaded element contributes to several sums. [`window`] is the convolution and its
//! gradient of the input, which gathers; [`weight`] is the gradient of the weight.
//!
//! Nothing is staged in shared memory. Adjacent elements of a row (or channels, if they are
//! innermost in memory) belong to adjacent invocations, so that loads are contiguous, and an
//! invocation's positions are in one column: with a window of 7 x 7 and 14 positions an element is
//! loaded 7 x 20 / 14 = 10 times, each time by invocations that are close in time and position, so
//! from the first cache.

mod axis;
mod weight;
mod window;
mod window_kernel;

pub use crate::convolution::depthwise::weight::backward_weight;

pub use crate::convolution::depthwise::window::backward_data;

pub use crate::convolution::depthwise::window::forward;

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::primitives::loops::max_loop_iterations;
use crate::view::View;
use crate::view::layout::MAX_INDEX_32;
use dml_kernel::dense::MAX_GROUPS;

/// Whether the convolution between these tensors, dense and of one memory order, is computed here.
/// Very large ones are computed as matrix products.
pub fn is_supported(cx: &Context, g: &Geometry, inner: &View, outer: &View) -> bool {
    let (channels, rank) = (g.groups, g.kernel.len());
    let taps = g.kernel.iter().product::<i64>();
    let numbers = g.kernel.iter().chain(&g.dilation).chain(&g.padding);
    // Offsets in an image have 32 bits, and so has the index of an invocation: backward, of the
    // positions of all phases.
    let reach = |t: &View| t.numel() / t.sizes[0].max(1);
    let windows = |spatial: &[i64]| {
        let each = spatial.iter().zip(&g.stride).map(|(n, stride)| n + 2 * stride);
        each.fold(g.batch.saturating_mul(channels), i64::saturating_mul)
    };
    // Upper bound of loop iterations: one for each tap, and one for each position of an
    // invocation's tiles.
    let turns = taps + (1 << 12);
    (g.inner.0, g.outer.0) == (1, 1)
        && (1..=3).contains(&rank)
        && inner.dtype.is_float()
        && inner.numel().min(outer.numel()).min(taps) > 0
        && numbers.into_iter().all(|&n| n < MAX_INDEX_32)
        && g.stride.iter().all(|&n| n < MAX_STRIDE)
        && windows(&g.inner.1).max(windows(&g.outer.1)) < 1 << 31
        && reach(inner).max(reach(outer)).max(channels * taps) < MAX_INDEX_32
        && channels < MAX_GROUPS as i64
        && max_loop_iterations(cx).is_none_or(|allowed| turns <= allowed)
}

/// Maximum stride; larger ones are computed as products, since backward every phase has positions.
const MAX_STRIDE: i64 = 256;
