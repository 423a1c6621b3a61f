//! The gradient of the weight: for every channel and tap a sum over images and windows.
//!
//! A workgroup computes some channels, some of the filter's lines along the tile's dimension, and a
//! slice of the windows. An invocation has one line, of one channel or of a few adjacent ones, and
//! accumulates its taps in registers; invocations that share a line are reduced as a tree. Each
//! slice writes a partial sum, and a reduction adds those. An invocation adds the sums of a limited
//! number of tiles, so that errors grow like those of pairwise summation.

use crate::context::Context;
use crate::convolution::depthwise::axis::{
    self, MAX_TILE_POSITIONS, MAX_TILE_POSITIONS_IN_ROW, Pass, Tile, axes, inside, shape, strides, tap_strides,
};
use crate::convolution::geometry::{Geometry, Spatial};
use crate::convolution::order::is_last;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::matmul::divisor::Divisor;
use crate::matmul::gemm::multiply_add;
use crate::matmul::operand::{Memory, VECTOR};
use crate::matmul::select::Limits;
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::axes::Axes;
use crate::reduction::sum::sum_into;
use crate::spatial::geometry::PerAxis;
use crate::view::View;
use dml_engine::interface::{Each, U32};
use dml_engine::parameters;
use dml_kernel::dense::MAX_GROUPS;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, Var};

/// Maximum number of lines of a workgroup.
const MAX_LINES: u32 = 8;

/// Maximum number of adjacent channels of a workgroup, or of chunks of them if an invocation has
/// several.
const CHANNELS: u32 = 32;

/// Maximum number of taps of a line for an invocation to have several channels.
const MAX_MULTICHANNEL_TAPS: u32 = 8;

/// Maximum number of elements and accumulators of an invocation of several channels.
const REGISTERS: u32 = 96;

/// Maximum number of invocations of a workgroup.
const THREADS: u32 = 256;

/// Maximum number of tiles that an invocation adds one after the other.
const TILES_PER_INVOCATION: i64 = 64;

/// The gradient of the weight, `[channel, 1, taps..]`, whose taps follow each other at one
/// distance.
pub fn backward_weight(cx: &Context, g: &Geometry, inner: &View, outer: &View, out: &View) -> Result<()> {
    let (axes, rank, channels) = (axes(g), g.kernel.len(), g.groups);
    let limits = Limits::of(cx.device.info());
    let last = is_last(inner) || is_last(outer);
    let along = Tile::along(rank);
    let steps = axes[along].steps(Pass::Forward);
    let taps: i64 = g.kernel.iter().product();
    let mut counts: Spatial = g.outer.1.clone();
    let size = counts[along];
    let outer_rows = counts.iter().product::<i64>() / size * g.batch;
    // The order of additions depends on the width, so the width depends on shapes alone; the kind
    // of loads may also depend on alignment.
    let has_vectors = steps.taps <= MAX_MULTICHANNEL_TAPS && channels % i64::from(VECTOR) == 0;
    let width = if last && has_vectors && inner.dtype.bytes() <= 4 { VECTOR } else { 1 };
    let loads_vectors = width > 1 && [inner, outer].into_iter().all(|t| Memory::from(t).is_aligned(VECTOR));
    let chunks = channels / i64::from(width);
    let columns = chunks.saturating_mul(outer_rows).saturating_mul(taps / i64::from(steps.taps));
    // The windows of a partial tile are computed one by one.
    let most = if rank == 1 && !last { MAX_TILE_POSITIONS_IN_ROW } else { MAX_TILE_POSITIONS };
    let one = Tile::new(along, &steps, 1);
    let cost = |tile: &Tile| {
        let windows = i64::from(tile.windows);
        size / windows * tile.cost(1) + size % windows * one.cost(1)
    };
    let registers = |tile: &Tile| (tile.windows + tile.positions().len() as u32 + tile.taps) * width;
    let tiles = (1..=most).map(|n| Tile::new(along, &steps, n));
    let tiles = tiles.filter(|tile| width == 1 || tile.windows == 1 || registers(tile) <= REGISTERS);
    let tile = Tile::choose(&limits, tiles, [size, columns], cost).unwrap_or(one);
    let count = tile.count(size);
    counts[along] = count;
    let total = outer_rows * count;
    let lines = (taps / i64::from(tile.taps)) as u32;
    let groups = lines.div_ceil(lines.div_ceil(MAX_LINES));
    let together = 1 << (THREADS / groups).min(THREADS / 2).ilog2();
    let neighbours = if last { (chunks as u32).min(CHANNELS).next_power_of_two() } else { 1 };
    let ragged = size % i64::from(tile.windows) != 0;
    let lanes = [together / neighbours, neighbours];
    let channels_of = Channels { last, width, loads_vectors };
    let spec = Spec { dtype: inner.dtype, sums: out.dtype, axes, tile, channels: channels_of, ragged, groups, lanes };
    let blocks = [(chunks as u32).div_ceil(neighbours), lines.div_ceil(groups)];
    // Enough workgroups to keep the adapter busy, at least two iterations for each invocation, and
    // short sums.
    let wide = |n: u32| i64::from(n);
    let turn = wide(lanes[0]);
    let needed = ceil(total, turn * TILES_PER_INVOCATION);
    let wanted =
        ceil((8.0 * limits.compute_units) as i64, wide(blocks[0]) * wide(blocks[1])).min(ceil(total, 2 * turn));
    let slices = needed.max(wanted).clamp(1, MAX_GROUPS as i64);
    let length = ceil(ceil(total, slices), turn) * turn;
    let slices = ceil(total, length);
    let run = |spec: &Spec, sums: &View| {
        let arguments = Arguments {
            out: sums,
            inner,
            outer,
            chunks: chunks as u32,
            total: total as u32,
            length: length as u32,
            counts: counts.iter().copied().collect(),
            inner_size: &inner.sizes[2..],
            outer_size: &outer.sizes[2..],
            padding: &g.padding,
        };
        let operations = multiply_adds(sums.dtype, (outer.numel() * taps) as u64);
        cx.run_with_cost(spec, &arguments, [blocks[0], blocks[1], slices as u32], operations)
    };
    let rows = out.as_strided(&[channels, taps], &[out.strides[0], out.strides[out.dim() - 1]], 0);
    if slices == 1 && rows.is_contiguous() {
        return run(&spec, out);
    }
    let sums = cx.empty(accumulator(inner.dtype), &[slices, channels, taps])?;
    run(&Spec { sums: sums.dtype, ..spec }, &sums)?;
    sum_into(cx, &sums, &rows, Axes::of_dims(&[0], 3, false))
}

fn ceil(n: i64, by: i64) -> i64 {
    (n + by - 1) / by
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    /// The dtype that is written: the dtype of the result, or of a slice's partial sums.
    sums: DType,
    axes: axis::Axes,
    tile: Tile,
    channels: Channels,
    /// The last tile of a line of windows is partial.
    ragged: bool,
    /// Lines of a workgroup.
    groups: u32,
    /// Invocations that share a line, and invocations along adjacent channels; powers of two.
    lanes: [u32; 2],
}

/// The channels of an invocation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Channels {
    /// Channels are the innermost dimension in memory.
    last: bool,
    /// Number of adjacent channels; 1 where channels are not the innermost dimension.
    width: u32,
    /// The channels are loaded in one access.
    loads_vectors: bool,
}

impl Channels {
    /// Loads the elements of chunk `at` (u32).
    fn load<'b>(&self, pointer: Pointer<'b>, at: Value<'b>) -> Vec<Value<'b>> {
        if self.loads_vectors {
            return pointer.load_chunk(at, self.width);
        }
        (0..self.width).map(|channel| pointer.load(at * self.width + channel)).collect()
    }
}

parameters! {
    /// Workgroups: dimension 0 is channels, 1 lines, 2 slices.
    Spec as s => Arguments, Parameters {
        out: Output = s.sums,
        inner: Input = s.dtype,
        outer: Input = s.dtype,
        /// Number of chunks of channels, one for each invocation.
        chunks: U32,
        /// Tiles of a channel in all images, and tiles of a slice.
        total: U32,
        length: U32,
        /// Windows of the outer side in each dimension, or tiles of windows.
        counts: Each<Divisor> = s.axes.iter().map(|_| ()).collect(),
        inner_size: PerAxis = s.axes.len(),
        outer_size: PerAxis = s.axes.len(),
        padding: PerAxis = s.axes.len(),
    }
}

impl Spec {
    fn threads(&self) -> u32 {
        self.groups * self.lanes[0] * self.lanes[1]
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "depthwise weight"
    }

    fn full_name(&self) -> String {
        format!("depthwise weight {}", shape(&self.axes))
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Spec { tile, ref axes, groups, lanes: [together, neighbours], channels, .. } = *self;
        let width = channels.width;
        let (signed, wide) = (ScalarType::I32, ScalarType::U64);
        let along = tile.along;
        let local = b.local_id(0);
        let lane = (local >> neighbours.ilog2()) & (together - 1);
        let line = b.group_id(1) * groups + (local >> (together * neighbours).ilog2());
        let chunk = b.group_id(0) * neighbours + (local & (neighbours - 1));
        // Excess invocations repeat the work of the last ones, and write nothing.
        let taps: u32 = axes.iter().map(|axis| axis.taps).product();
        let lines = taps / tile.taps;
        let ours = line.lt(lines) & chunk.lt(p.chunks);
        let (line, chunk) = (line.min(lines - 1), chunk.min(p.chunks - 1));
        let (first, others, tap) = self.taps(b, line);

        let fastest = if channels.last { p.chunks.cast(signed) } else { b.i32(1) };
        let (inner_strides, inner_image) = strides(&p.inner_size, fastest);
        let (outer_strides, outer_image) = strides(&p.outer_size, fastest);
        let compute = self.dtype.compute();
        // Accumulators by tap, then channel.
        let sums: Vec<Var> = (0..tile.taps * width).map(|_| b.var(b.constant_of(compute, 0.0))).collect();
        let begin = b.group_id(2) * p.length;
        let end = (begin + p.length).min(p.total);
        b.for_(begin + lane, end, together, |at| {
            // The coordinates of the tile's first window, and of what it reads.
            let mut rest = at;
            let (mut offset, mut ok, mut outer_offset) = (b.i32(0), b.bool(true), b.i32(0));
            let mut start = outer_offset;
            for d in (0..axes.len()).rev() {
                let (quotient, digit) = p.counts[d].divide(rest);
                rest = quotient;
                if d == along {
                    start = (digit * tile.windows).cast(signed);
                    continue;
                }
                let digit = digit.cast(signed);
                let seen = digit * axes[d].stride as i32 - p.padding[d] + others[d];
                let (step, valid) = inside(seen, p.inner_size[d], inner_strides[d]);
                (offset, ok, outer_offset) = (offset + step, ok & valid, outer_offset + digit * outer_strides[d]);
            }
            let (image, own) =
                if channels.last { (rest, chunk.cast(wide)) } else { (rest * p.chunks + chunk, b.int(wide, 0)) };
            let inner = p.inner.offset((image.cast(wide) * inner_image.cast(wide) + own) * width);
            let outer = p.outer.offset((image.cast(wide) * outer_image.cast(wide) + own) * width);
            let seen = start * axes[along].stride as i32 - p.padding[along] + first;
            let load = |position: Value<'b>| {
                let (step, valid) = inside(position, p.inner_size[along], inner_strides[along]);
                let loaded = channels.load(inner, (offset + step).cast(ScalarType::U32));
                loaded.into_iter().map(|x| (ok & valid).select(x, 0)).collect::<Vec<Value>>()
            };
            let grad =
                |at: Value<'b>| channels.load(outer, (outer_offset + at * outer_strides[along]).cast(ScalarType::U32));
            let whole = || {
                let grads: Vec<Vec<Value>> = (0..tile.windows as i32).map(|i| grad(start + i)).collect();
                let order = tile.positions();
                let values: Vec<Vec<Value>> = order.iter().map(|&position| load(seen + position)).collect();
                for (i, sum) in (0u32..).zip(&sums) {
                    let (tap, channel) = (i / width, (i % width) as usize);
                    let value = |window: usize| {
                        let position = tile.position(window as u32, tap);
                        values[order.partition_point(|&x| x < position)][channel]
                    };
                    let own = grads[1..].iter().enumerate();
                    let own = own.fold(grads[0][channel] * value(0), |own, (i, grad)| {
                        multiply_add(grad[channel], value(i + 1), own)
                    });
                    sum.set(sum.get() + own);
                }
            };
            let one_by_one = || {
                b.for_(start, p.outer_size[along], 1, |at| {
                    let grad = grad(at);
                    let seen = seen + (at - start) * axes[along].stride as i32;
                    for (tap, sums) in (0u32..).zip(sums.chunks(width as usize)) {
                        let values = load(seen + tile.position(0, tap));
                        for ((sum, value), &grad) in sums.iter().zip(values).zip(&grad) {
                            sum.set(multiply_add(grad, value, sum.get()));
                        }
                    }
                });
            };
            if self.ragged {
                b.if_else((start + tile.windows as i32).le(p.outer_size[along]), whole, one_by_one);
            } else {
                whole();
            }
        });
        self.add(b, &sums, lane);
        b.if_(ours & lane.eq(0), || {
            let slice = (b.group_id(2) * p.chunks + chunk).cast(wide) * (taps * width);
            let out = p.out.offset(slice);
            let stride = tap_strides(axes)[along];
            for (i, sum) in (0u32..).zip(&sums) {
                out.store(tap + (i / width * stride + i % width * taps), sum.get());
            }
        });
    }
}

impl Spec {
    /// Source offsets of a line's taps from the filter's first tap, along the tile's dimension
    /// (i32) and in the other dimensions (i32), and the offset of the line's first tap in the
    /// filter (u32).
    fn taps<'b>(&self, b: &'b Builder, line: Value<'b>) -> (Value<'b>, Vec<Value<'b>>, Value<'b>) {
        let (mut rest, mut tap) = (line, b.u32(0));
        let strides = tap_strides(&self.axes);
        let mut seen = vec![b.i32(0); self.axes.len()];
        for (d, axis) in self.axes.iter().enumerate().rev() {
            // Along the tile's dimension, a line has several taps.
            let each = if d == self.tile.along { self.tile.taps } else { 1 };
            let digits = axis.taps / each;
            let quotient = rest / digits;
            let first = (rest - quotient * digits) * each;
            seen[d] = (first * axis.dilation).cast(ScalarType::I32);
            tap = tap + first * strides[d];
            rest = quotient;
        }
        (seen[self.tile.along], seen, tap)
    }

    /// Reduces the accumulators of the invocations that share a line; the first invocation gets the
    /// totals.
    fn add<'b>(&self, b: &'b Builder, sums: &[Var<'b>], lane: Value<'b>) {
        let [together, neighbours] = self.lanes;
        if together == 1 {
            return;
        }
        let (threads, local) = (self.threads(), b.local_id(0));
        let scalar = self.dtype.compute();
        let at_once = (SHARED / (threads * scalar.bytes())).clamp(1, sums.len() as u32);
        let shared = b.shared(scalar, 1, threads * at_once);
        for (turn, sums) in sums.chunks(at_once as usize).enumerate() {
            if turn > 0 {
                b.barrier();
            }
            for (i, sum) in sums.iter().enumerate() {
                shared.store(local + i as u32 * threads, sum.get());
            }
            let mut half = together / 2;
            while half > 0 {
                b.barrier();
                b.if_(lane.lt(half), || {
                    for (i, sum) in sums.iter().enumerate() {
                        let own = local + i as u32 * threads;
                        let total = sum.get() + shared.load(own + half * neighbours);
                        sum.set(total);
                        shared.store(own, total);
                    }
                });
                half /= 2;
            }
        }
    }
}

/// Maximum bytes of shared memory.
const SHARED: u32 = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::depthwise::axis::{self, Axis};
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let axis = |taps, stride, dilation| Axis { taps, stride, dilation };
        let cases: [(&[Axis], DType, bool, [u32; 2]); 4] = [
            (&[axis(7, 1, 1), axis(7, 1, 1)], DType::F32, false, [32, 1]),
            (&[axis(3, 2, 1), axis(3, 2, 3)], DType::F16, true, [4, 16]),
            (&[axis(62, 1, 2)], DType::F64, false, [64, 1]),
            (&[axis(2, 3, 6), axis(40, 2, 1), axis(5, 1, 2)], DType::BF16, true, [1, 32]),
        ];
        for (axes, dtype, last, lanes) in cases {
            for ragged in [false, true] {
                let along = Tile::along(axes.len());
                let tile = Tile::new(along, &axes[along].steps(Pass::Forward), 4);
                let (axes, groups) = (axis::Axes::from_slice(axes), 3);
                let sums = if ragged { dtype } else { accumulator(dtype) };
                for (width, loads_vectors) in [(1, false), (4, false), (4, true)] {
                    let channels = Channels { last, width, loads_vectors };
                    let axes = axes.clone();
                    if width == 1 || last {
                        accepted(&Spec { dtype, sums, axes, tile, channels, ragged, groups, lanes }.build());
                    }
                }
            }
        }
    }
}
