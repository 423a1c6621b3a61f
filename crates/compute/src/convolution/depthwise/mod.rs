//! Convolutions in which every channel is a group of its own, with one filter (depthwise).
//!
//! As a product such a convolution has one row, and reads every element as often as the window has
//! taps. Here an invocation holds several [neighbouring places](axis::Tile) instead, so that what
//! it loads serves several of its sums. [`window`] is the convolution and its gradient of the
//! input, which gathers; [`weight`] the gradient of the weight.
//!
//! Nothing is staged in shared memory. Neighbours along a row (or channels, where these are the
//! fastest in memory) belong to neighbouring invocations, so that loads are contiguous, and an
//! invocation's places lie below one another: of a window of 7 x 7 and 14 places an element is
//! loaded 7 x 20 / 14 = 10 times, each time by invocations that are near in time and place, so from
//! the first cache.

pub mod axis;
pub mod weight;
pub mod window;
pub mod window_kernel;

pub use crate::convolution::depthwise::weight::backward_weight;

pub use crate::convolution::depthwise::window::backward_data;

pub use crate::convolution::depthwise::window::forward;

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::primitives::loops::turns_allowed;
use crate::view::View;
use crate::view::layout::SHORT;
use dml_kernel::dense::MAX_GROUPS;

/// Whether the convolution between these tensors, dense and of one memory order, is done here. Very
/// large ones are products.
pub fn applies(cx: &Context, g: &Geometry, inner: &View, outer: &View) -> bool {
    let (channels, rank) = (g.groups, g.kernel.len());
    let taps = g.kernel.iter().product::<i64>();
    let numbers = g.kernel.iter().chain(&g.dilation).chain(&g.padding);
    // Offsets in an image have 32 bits, and so has the number of an invocation: of places backward,
    // with those of every phase.
    let reach = |t: &View| t.numel() / t.sizes[0].max(1);
    let places = |spatial: &[i64]| {
        let each = spatial.iter().zip(&g.stride).map(|(n, stride)| n + 2 * stride);
        each.fold(g.batch.saturating_mul(channels), i64::saturating_mul)
    };
    // At worst one a tap, and one a place of an invocation's tiles.
    let turns = taps + (1 << 12);
    (g.inner.0, g.outer.0) == (1, 1)
        && (1..=3).contains(&rank)
        && inner.dtype.is_float()
        && inner.numel().min(outer.numel()).min(taps) > 0
        && numbers.into_iter().all(|&n| n < SHORT)
        && g.stride.iter().all(|&n| n < MOST_STRIDE)
        && places(&g.inner.1).max(places(&g.outer.1)) < 1 << 31
        && reach(inner).max(reach(outer)).max(channels * taps) < SHORT
        && channels < MAX_GROUPS as i64
        && turns_allowed(cx).is_none_or(|allowed| turns <= allowed)
}

/// Strides from which on windows are products: backward, places of every phase are asked for.
const MOST_STRIDE: i64 = 256;
