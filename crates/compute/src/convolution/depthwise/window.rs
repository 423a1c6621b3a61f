//! The convolution of every channel by its own filter, and the gradient of its input: sums over the
//! taps of a window.

use crate::context::Context;
use crate::convolution::depthwise::axis::{MOST_PLACES, MOST_PLACES_OF_ROW, Pass, Tile, axes};
use crate::convolution::depthwise::window_kernel::{Arguments, Spec};
use crate::convolution::geometry::{Geometry, Spatial};
use crate::convolution::order::is_last;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::matmul::operand::{Memory, WIDE};
use crate::matmul::select::Limits;
use crate::movement::copy;
use crate::primitives::work::multiply_adds;
use crate::view::View;
use dml_kernel::dense;

/// The outer side from the inner.
pub fn forward(cx: &Context, g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Result<()> {
    run(cx, g, Pass::Forward, [inner, weight, out], bias)
}

/// The inner side from the outer: every element gathers from the windows that it was in.
pub fn backward_data(
    cx: &Context,
    g: &Geometry,
    outer: &View,
    weight: &View,
    out: &View,
    bias: Option<&View>,
) -> Result<()> {
    run(cx, g, Pass::Data, [outer, weight, out], bias)
}

/// Taps up to which an invocation has several channels: it holds the weights of them all.
const WIDE_TAPS: u32 = 8;

/// Places that a tile may have: few choices, so that few kernels are made.
const PLACES: [u32; 6] = [14, 8, 7, 4, 2, 1];

/// Sums that an invocation holds.
const REGISTERS: u32 = 32;

fn run(cx: &Context, g: &Geometry, pass: Pass, tensors: [&View; 3], bias: Option<&View>) -> Result<()> {
    let [source, weight, out] = tensors;
    let (axes, rank, channels) = (axes(g), g.kernel.len(), g.groups);
    let last = is_last(source) || is_last(out);
    let along = Tile::along(rank);
    let steps = axes[along].steps(pass);
    let aligned = |t: &View| Memory::from(t).is_aligned(WIDE);
    let wide = last
        && steps.taps <= WIDE_TAPS
        && channels % i64::from(WIDE) == 0
        && source.dtype.bytes() <= 4
        && aligned(source)
        && aligned(out);
    let width = if wide { WIDE } else { 1 };
    let places: Spatial = (0..rank).map(|d| axes[d].places(pass, out.sizes[2 + d], g.padding[d])).collect();
    let phases: i64 = axes.iter().map(|axis| i64::from(axis.steps(pass).phases)).product();
    let chunks = channels / i64::from(width);
    let others = (0..rank).filter(|&d| d != along).map(|d| places[d]).product::<i64>() * g.batch * chunks * phases;
    let most = if rank == 1 && !last { MOST_PLACES_OF_ROW } else { MOST_PLACES };
    let tiles = PLACES.into_iter().filter(|&n| n <= most && n * width <= REGISTERS);
    let tiles = tiles.map(|n| Tile::new(along, &steps, n));
    let (size, limits) = (places[along], Limits::of(cx.device.info()));
    let tile = Tile::choose(&limits, tiles, [size, others], |tile| tile.count(size) * tile.cost(0));
    let tile = tile.unwrap_or(Tile::new(along, &steps, 1));
    let mut counts = places;
    counts[along] = tile.count(size);
    let threads = others * counts[along];
    // Neighbouring invocations read weights of neighbouring channels.
    let filters = if last { Some(by_taps(cx, weight, channels)?) } else { None };
    let filters = filters.as_ref().unwrap_or(weight);
    let spec = Spec {
        dtype: source.dtype,
        weight: filters.dtype,
        pass,
        axes,
        tile,
        channels: last.then_some(width),
        bias: bias.is_some(),
    };
    let arguments = Arguments {
        out,
        source,
        weight: filters,
        bias,
        bias_step: bias.map(|bias| bias.strides[0] as u32),
        threads: threads as u32,
        chunks,
        counts: counts.iter().copied().collect(),
        source_size: &source.sizes[2..],
        result_size: &out.sizes[2..],
        padding: &g.padding,
    };
    let taps = weight.numel() / channels;
    let operations = multiply_adds(accumulator(out.dtype), (out.numel() * taps) as u64);
    cx.run_heavy(&spec, &arguments, dense::groups(threads as u64), operations)
}

/// Filters `[tap, channel]`, in the dtype of sums.
fn by_taps(cx: &Context, weight: &View, channels: i64) -> Result<View> {
    let taps = weight.numel() / channels;
    let filters = cx.empty(accumulator(weight.dtype), &[taps, channels])?;
    copy::device_copy(cx, &weight.as_strided(&[taps, channels], &[1, taps], 0), &filters)?;
    Ok(filters)
}
