//! Gradients of images with respect to bins of regions.
//!
//! The contribution of a bin to a pixel is the product of a vertical and a horizontal weight. The
//! weights are written first, a small matrix for each region and axis. Then every pixel gathers
//! from the regions near it, in their order: a workgroup has a tile of pixels, and lists the
//! regions that touch it. Nothing is scattered, so the sums are reproducible.

use crate::context::Context;
use crate::detection::region::{Bins, Grid, GridNumbers, image_number};
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::spatial::geometry::index_type;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, folded, linear_id};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Rows and columns of a workgroup's pixels.
const TILE: u32 = 16;

/// Number of channels of an invocation.
const CHANNELS_PER_INVOCATION: u32 = 8;

/// The channels of the input that a bin reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Channels {
    /// The channel of the result.
    Same,
    /// Separate channels for each bin: the input has as many as the result's channels and the bins
    /// together.
    ByPosition,
}

/// Writes the gradient of the images to `out` (`[images, channels, height, width]`), given the
/// gradient `grad` (`[regions, channels, rows, columns]`) of the bins of regions `rois`
/// (`[regions, 5]`). `argmax` (int32, of the shape of `grad`): the index of the pixel of each bin,
/// if a bin is one pixel. All are contiguous.
pub fn gather(
    cx: &Context,
    grad: &View,
    rois: &View,
    bins: Bins,
    grid: Grid,
    by: Channels,
    argmax: Option<&View>,
    out: &View,
) -> Result<()> {
    let (dtype, regions) = (grad.dtype, rois.sizes[0]);
    let weights = |axis: usize| -> Result<View> {
        let weights = cx.empty(accumulator(dtype), &[regions, grid.bins[axis], grid.image[axis]])?;
        let spec = WeightSpec { dtype, index: index_type(&[&weights]), bins, axis, chosen: argmax.is_some() };
        let arguments = WeightArguments { weights: &weights, rois, numel: weights.numel(), grid };
        cx.run_threads(&spec, &arguments, weights.numel() as u64)?;
        Ok(weights)
    };
    let (rows, columns) = (weights(0)?, weights(1)?);
    let spec =
        GatherSpec { dtype, index: index_type(&[grad, out, &rows, &columns]), bins, by, chosen: argmax.is_some() };
    let parts = |n: i64, part: u32| (n + i64::from(part) - 1) / i64::from(part);
    let groups = out.sizes[0]
        * parts(out.sizes[1], CHANNELS_PER_INVOCATION)
        * parts(out.sizes[2], TILE)
        * parts(out.sizes[3], TILE);
    check!(groups < i64::from(i32::MAX), TooLarge, "{}: the images are too large for dml", cx.name);
    let arguments = GatherArguments {
        out,
        grad,
        argmax,
        rois,
        rows: &rows,
        columns: &columns,
        groups: groups as u32,
        regions: regions as u32,
        channels: out.sizes[1],
        grid,
    };
    cx.run(&spec, &arguments, folded(groups as u64))
}

/// Writes the weights of pixels in bins along one axis: `[regions, bins, pixels]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WeightSpec {
    dtype: DType,
    index: ScalarType,
    bins: Bins,
    axis: usize,
    /// A bin is one of its pixels, not their mean.
    chosen: bool,
}

parameters! {
    WeightSpec as s => WeightArguments, WeightParameters {
        weights: Output = accumulator(s.dtype),
        rois: Input = s.dtype,
        numel: Index = s.index,
        grid: GridNumbers = s.dtype,
    }
}

impl KernelSpec for WeightSpec {
    fn name(&self) -> &'static str {
        "region_weights"
    }

    fn write<'b>(&self, b: &'b Builder, p: WeightParameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let [bins, pixels] = [p.grid.bins[self.axis], p.grid.image[self.axis]].map(|n| n.cast(index));
            let [bin, pixel] = [(i / pixels) % bins, i % pixels].map(|n| n.cast(ScalarType::I32));
            let extent = p.grid.extent(self.bins, p.rois, i / pixels / bins * 5, self.axis);
            let number = extent.size.scalar();
            let weight = b.var(b.constant_of(number, 0.0));
            match self.bins {
                Bins::Pixels { .. } => {
                    let (first, end) = extent.within(bin, b.i32(0), p.grid.image[self.axis] - 1);
                    let share = if self.chosen { weight.get().like(1.0) } else { 1.0 / (end - first).cast(number) };
                    b.if_(pixel.ge(first) & pixel.lt(end), || weight.set(share));
                }
                Bins::Samples { .. } => {
                    let (first, end) = extent.within(bin, pixel - 1, pixel + 1);
                    b.for_(first, end, 1, |sample| {
                        let taps = extent.taps(extent.sample(bin, sample));
                        for (at, tap) in [taps.low, taps.high].into_iter().zip(taps.weights) {
                            b.if_(taps.inside & at.eq(pixel), || weight.set(weight.get() + tap));
                        }
                    });
                    weight.set(weight.get() / extent.samples.cast(number).max(1.0));
                }
            }
            p.weights.store(i, weight.get());
        });
    }
}

/// Gathers the contributions of all regions' bins to every pixel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GatherSpec {
    dtype: DType,
    index: ScalarType,
    bins: Bins,
    by: Channels,
    chosen: bool,
}

parameters! {
    GatherSpec as s => GatherArguments, GatherParameters {
        out: Output = s.dtype,
        grad: Input = s.dtype,
        argmax: Option<Input> = s.chosen.then_some(DType::I32),
        rois: Input = s.dtype,
        rows: Input = accumulator(s.dtype),
        columns: Input = accumulator(s.dtype),
        groups: U32,
        regions: U32,
        channels: Index = s.index,
        grid: GridNumbers = s.dtype,
    }
}

impl KernelSpec for GatherSpec {
    fn name(&self) -> &'static str {
        "region_gradient"
    }

    fn write<'b>(&self, b: &'b Builder, p: GatherParameters<'b>) {
        let index = self.index;
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(p.groups), || b.return_());
        let [height, width] = p.grid.image.map(|n| n.cast(ScalarType::U32));
        let tiles = |n: Value<'b>| (n + (TILE - 1)) / TILE;
        let (rest, left) = (group / tiles(width), (group % tiles(width)) * TILE);
        let (rest, top) = (rest / tiles(height), (rest % tiles(height)) * TILE);
        let parts = (p.channels.cast(ScalarType::U32) + (CHANNELS_PER_INVOCATION - 1)) / CHANNELS_PER_INVOCATION;
        let (image, channel) = (rest / parts, (rest % parts) * CHANNELS_PER_INVOCATION);
        let (x, y) = (left + b.local_id(0) % TILE, top + b.local_id(0) / TILE);
        let there = x.lt(width) & y.lt(height);
        // An invocation without a pixel continues, for the barriers.
        let [x, y] = [x.min(width - 1), y.min(height - 1)].map(|n| n.cast(index));
        let [height, width] = [height, width].map(|n| n.cast(index));
        // Missing channels are replaced by the last one.
        let last = p.channels - 1;
        let channels: Vec<Value> = (0..CHANNELS_PER_INVOCATION).map(|k| (channel + k).cast(index).min(last)).collect();
        let sums: Vec<_> = channels.iter().map(|_| b.var(b.constant_of(self.dtype.compute(), 0.0))).collect();

        let list = b.shared(ScalarType::U32, 1, GROUP);
        let scratch = prefix_sum::scratch(b, ScalarType::U32);
        b.for_(0u32, p.regions, GROUP, |base| {
            let candidate = base + b.local_id(0);
            let near = b.var(b.u32(0));
            b.if_(candidate.lt(p.regions), || {
                let row = candidate.cast(index) * 5;
                let here = image_number(p.rois, row).eq(image.cast(ScalarType::I32));
                let may_touch = |axis: usize, first: Value<'b>| {
                    let first = first.cast(ScalarType::I32);
                    p.grid.extent(self.bins, p.rois, row, axis).may_touch(first, first + (TILE - 1) as i32)
                };
                near.set((here & may_touch(0, top) & may_touch(1, left)).cast(ScalarType::U32));
            });
            let (inclusive, total) = prefix_sum::workgroup(b, scratch, near.get());
            b.if_(near.get().ne(0), || list.store(inclusive - 1, candidate));
            b.barrier();
            b.for_(0u32, total, 1, |entry| {
                let region = list.load(entry).cast(index);
                self.add_region(b, &p, region, (y, x), (height, width), &channels, &sums);
            });
            b.barrier();
        });
        b.if_(there, || {
            let plane = image.cast(index) * p.channels;
            for (k, sum) in sums.iter().enumerate() {
                let this = (channel + k as u32).cast(index);
                b.if_(this.lt(p.channels), || {
                    p.out.store(((plane + this) * height + y) * width + x, sum.get());
                });
            }
        });
    }
}

impl GatherSpec {
    /// Adds the contributions of one region's bins to a pixel's channels.
    fn add_region<'b>(
        &self,
        b: &'b Builder,
        p: &GatherParameters<'b>,
        region: Value<'b>,
        (y, x): (Value<'b>, Value<'b>),
        (height, width): (Value<'b>, Value<'b>),
        channels: &[Value<'b>],
        sums: &[dml_kernel::Var<'b>],
    ) {
        let index = self.index;
        let [rows, columns] = p.grid.bins.map(|n| n.cast(index));
        let row_weight = |row: Value<'b>| p.rows.load((region * rows + row) * height + y);
        let column_weight = |column: Value<'b>| p.columns.load((region * columns + column) * width + x);
        match self.by {
            Channels::ByPosition => {
                for (&channel, sum) in channels.iter().zip(sums) {
                    let bin = channel % (rows * columns);
                    let weight = row_weight(bin / columns) * column_weight(bin % columns);
                    b.if_(weight.ne(0.0), || {
                        sum.set(sum.get() + weight * p.grad.load(region * p.channels + channel));
                    });
                }
            }
            Channels::Same => b.for_(b.int(index, 0), rows, 1, |row| {
                let down = row_weight(row);
                b.if_(down.ne(0.0), || {
                    b.for_(b.int(index, 0), columns, 1, |column| {
                        let weight = down * column_weight(column);
                        b.if_(weight.ne(0.0), || {
                            for (&channel, sum) in channels.iter().zip(sums) {
                                let from = ((region * p.channels + channel) * rows + row) * columns + column;
                                let add = || sum.set(sum.get() + weight * p.grad.load(from));
                                match p.argmax {
                                    None => add(),
                                    Some(argmax) => {
                                        let pixel = (y * width + x).cast(ScalarType::I32);
                                        b.if_(argmax.load(from).eq(pixel), add);
                                    }
                                }
                            }
                        });
                    });
                });
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::F16, ScalarType::U32), (DType::F32, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for (bins, by, chosen) in [
                (Bins::Samples { aligned: true }, Channels::Same, false),
                (Bins::Samples { aligned: true }, Channels::ByPosition, false),
                (Bins::Pixels { closed: true }, Channels::Same, true),
                (Bins::Pixels { closed: false }, Channels::ByPosition, false),
            ] {
                accepted(&WeightSpec { dtype, index, bins, axis: 1, chosen }.build());
                accepted(&GatherSpec { dtype, index, bins, by, chosen }.build());
            }
        }
    }
}
