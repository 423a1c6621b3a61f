//! The convolution of every channel by its own filter, and the gradient of its input: sums over the
//! taps of a window.

use crate::context::Context;
use crate::convolution::depthwise::axis::{MAX_TILE_POSITIONS, MAX_TILE_POSITIONS_IN_ROW, Pass, Tile, axes};
use crate::convolution::depthwise::window_kernel::{Arguments, Spec};
use crate::convolution::geometry::{Geometry, Spatial};
use crate::convolution::order::is_last;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::matmul::operand::{Memory, VECTOR};
use crate::matmul::select::Limits;
use crate::movement::copy;
use crate::primitives::cost::multiply_adds;
use crate::primitives::registers::{Kept, Loads};
use crate::view::View;
use dml_kernel::dense;

/// Computes the outer side from the inner side.
pub fn forward(cx: &Context, g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Result<()> {
    run(cx, g, Pass::Forward, [inner, weight, out], bias)
}

/// Computes the inner side from the outer side: every element gathers from the windows that
/// contained it.
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

/// Maximum number of taps for an invocation to have several channels: it holds the weights of all
/// of them.
const MAX_MULTICHANNEL_TAPS: u32 = 8;

/// The possible numbers of windows of a tile: few, so that few kernels are compiled.
const TILE_POSITIONS: [u32; 6] = [14, 8, 7, 4, 2, 1];

/// Maximum number of accumulators of an invocation.
const REGISTERS: u32 = 32;

/// What an invocation of this many channels keeps in registers: sums, elements, and a filter's
/// taps.
fn kept(tile: &Tile, channels: u32) -> Kept {
    let positions = tile.positions().len() as u32;
    Kept {
        bytes: 4,
        elements: (tile.windows + positions + tile.taps) * channels,
        loaded: (positions / 2, Loads::Elements),
    }
}

fn run(cx: &Context, g: &Geometry, pass: Pass, tensors: [&View; 3], bias: Option<&View>) -> Result<()> {
    let [source, weight, out] = tensors;
    let (axes, rank, channels) = (axes(g), g.kernel.len(), g.groups);
    let last = is_last(source) || is_last(out);
    let along = Tile::along(rank);
    let steps = axes[along].steps(pass);
    let aligned = |t: &View| Memory::from(t).is_aligned(VECTOR);
    let wide = last
        && steps.taps <= MAX_MULTICHANNEL_TAPS
        && channels % i64::from(VECTOR) == 0
        && source.dtype.bytes() <= 4
        && aligned(source)
        && aligned(out);
    let width = if wide { VECTOR } else { 1 };
    let windows: Spatial = (0..rank).map(|d| axes[d].windows(pass, out.sizes[2 + d], g.padding[d])).collect();
    let phases: i64 = axes.iter().map(|axis| i64::from(axis.steps(pass).phases)).product();
    let chunks = channels / i64::from(width);
    let others = (0..rank).filter(|&d| d != along).map(|d| windows[d]).product::<i64>() * g.batch * chunks * phases;
    let most = if rank == 1 && !last { MAX_TILE_POSITIONS_IN_ROW } else { MAX_TILE_POSITIONS };
    let tiles = TILE_POSITIONS.into_iter().filter(|&n| n <= most && n * width <= REGISTERS);
    let (size, limits) = (windows[along], Limits::of(cx.device.info()));
    let tiles = tiles.map(|n| Tile::new(along, &steps, n));
    let registers = limits.registers;
    let fits =
        |tile: &Tile| registers.is_none() || tile.windows == 1 || kept(tile, width).fits(registers, dense::GROUP);
    let tiles = tiles.filter(fits);
    let tile = Tile::choose(&limits, tiles, [size, others], |tile| tile.count(size) * tile.cost(0));
    let tile = tile.unwrap_or(Tile::new(along, &steps, 1));
    let mut counts = windows;
    counts[along] = tile.count(size);
    let threads = others * counts[along];
    // Transposed, so that neighbouring invocations read adjacent weights.
    let filters = if last { by_taps(cx, weight, channels)? } else { by_channels(cx, weight, channels)? };
    let spec = Spec {
        dtype: source.dtype,
        weight: filters.dtype,
        pass,
        axes,
        tile,
        channels: last.then_some(width),
        bias: bias.is_some(),
        few_registers: cx.device.info().capabilities.has_few_registers(),
    };
    let arguments = Arguments {
        out,
        source,
        weight: &filters,
        bias,
        bias_step: bias.map(|bias| bias.strides[0] as u32),
        threads: threads as u32,
        chunks,
        counts: counts.iter().copied().collect(),
        source_size: &source.sizes[2..],
        result_size: &out.sizes[2..],
        padding: &g.padding,
        taps: spec.few_registers.then_some(&g.kernel[..]),
    };
    let taps = weight.numel() / channels;
    let operations = multiply_adds(accumulator(out.dtype), (out.numel() * taps) as u64);
    cx.run_with_cost(&spec, &arguments, dense::groups(threads as u64), operations)
}

/// Filters as `[tap, channel]` in row-major order, in the dtype of accumulators.
fn by_taps(cx: &Context, weight: &View, channels: i64) -> Result<View> {
    let taps = weight.numel() / channels;
    let dtype = accumulator(weight.dtype);
    let filters = weight.as_strided(&[taps, channels], &[weight.strides[weight.dim() - 1], weight.strides[0]], 0);
    if filters.dtype == dtype && filters.is_contiguous() {
        return Ok(filters);
    }
    let copied = cx.empty(dtype, &[taps, channels])?;
    copy::device_copy(cx, &filters, &copied)?;
    Ok(copied)
}

/// Filters as `[channel, tap]` in row-major order.
fn by_channels(cx: &Context, weight: &View, channels: i64) -> Result<View> {
    let taps = weight.numel() / channels;
    let strides = [weight.strides[0], weight.strides[weight.dim() - 1]];
    copy::as_contiguous(cx, &weight.as_strided(&[channels, taps], &strides, 0))
}
