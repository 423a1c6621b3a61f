//! The gradient of grid sampling with respect to the input.
//!
//! Every point lists the pixels that it reads and their weights, the list is sorted by pixel, and
//! each element of the gradient sums its part of the list: no float atomics, and the same order in
//! every run.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::radix_sort;
use crate::primitives::segments::{self, for_each_of_key};
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, index_type, pixel_number};
use crate::spatial::grid_sampler::location::{Grid, Location, Mode, axes_as_channels};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Writes the gradient of the input to `out`.
pub fn run(cx: &Context, mode: Mode, grad: &View, grid: &View, out: &View) -> Result<()> {
    let rank = out.dim() - 2;
    let pixels: i64 = out.sizes[0] * out.sizes[2..].iter().product::<i64>();
    let points: i64 = grid.sizes[..=rank].iter().product();
    let reads = points * mode.taps().pow(rank as u32);
    if out.numel() == 0 {
        return Ok(());
    }
    if reads == 0 || grad.numel() == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    check!(
        pixels < i64::from(u32::MAX) && reads < i64::from(i32::MAX),
        TooLarge,
        "{}: {points} points and {pixels} pixels are more than dml can sort",
        cx.name
    );
    let (keys, weights) = (cx.empty(DType::U32, &[reads])?, cx.empty(accumulator(out.dtype), &[reads])?);
    let spec = ReadsSpec { mode, dtype: out.dtype, index: index_type(&[grid]), rank };
    let arguments = ReadsArguments {
        keys: &keys,
        weights: &weights,
        grid,
        points: points as u32,
        pixels: pixels as u32,
        size: &out.sizes[2..],
        grid_size: &grid.sizes[1..=rank],
        grid_strides: &axes_as_channels(grid),
    };
    cx.run_threads(&spec, &arguments, points as u64)?;

    let (keys, positions) = radix_sort::sort(cx, &keys, pixels as u32)?;
    let starts = segments::starts(cx, &keys, pixels as u32)?;
    let index = index_type(&[grad, out]);
    // A pixel is read by the points of its own image.
    for (i, part) in segments::parts(cx, reads / out.sizes[0]).enumerate() {
        let continues = i > 0;
        let spec = SumSpec { dtype: out.dtype, continues, index, rank };
        let arguments = SumArguments {
            out,
            before: continues.then_some(out),
            grad,
            weights: &weights,
            starts: &starts,
            positions: &positions,
            numel: out.numel(),
            channels: out.sizes[1],
            points: points as u32,
            part,
            size: &out.sizes[2..],
            grid_size: &grid.sizes[1..=rank],
            grad_strides: grad,
            out_strides: out,
        };
        cx.run_threads(&spec, &arguments, out.numel() as u64)?;
    }
    Ok(())
}

/// Specialisation of the kernel that lists reads: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReadsSpec {
    mode: Mode,
    dtype: DType,
    index: ScalarType,
    rank: usize,
}

parameters! {
    ReadsSpec as s => ReadsArguments, ReadsParameters {
        keys: Output = DType::U32,
        weights: Output = accumulator(s.dtype),
        grid: Input = s.dtype,
        points: U32,
        /// Number of pixels of all images: the key of a read outside of the image.
        pixels: U32,
        size: PerAxis = s.rank,
        grid_size: PerAxis = s.rank,
        grid_strides: ImageStrides = (s.index, s.rank),
    }
}

/// Lists the reads of every point: for each combination of taps in turn, the pixel of each point,
/// and the weight.
impl KernelSpec for ReadsSpec {
    fn name(&self) -> &'static str {
        "grid_sampler_reads"
    }

    fn write<'b>(&self, b: &'b Builder, p: ReadsParameters<'b>) {
        let grid = Grid { pointer: p.grid, strides: p.grid_strides };
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.points), || {
            let at = Coordinates::new(i.cast(self.index), b.int(self.index, 1), &p.grid_size, false);
            let locations = grid.locate(b, self.mode, &at, &p.size);
            let image = p.size.iter().fold(b.u32(1), |product, &n| product * n.cast(ScalarType::U32));
            let first = at.batch.cast(ScalarType::U32) * image;
            let mut read = i;
            combinations(&locations, &mut Vec::new(), &mut |choice| {
                let taps = || locations.iter().zip(choice).map(|(l, &k)| &l.taps[k]);
                let pixel: Vec<Value> = taps().map(|t| t.index).collect();
                let inside = taps().fold(b.bool(true), |all, t| all & t.inside);
                let weight = taps().map(|t| t.weight).reduce(|a, b| a * b);
                let number = pixel_number(&pixel, &p.size, ScalarType::U32).bitcast(ScalarType::U32);
                p.keys.store(read, inside.select(first + number, p.pixels));
                if let Some(weight) = weight {
                    p.weights.store(read, weight);
                }
                read = read + p.points;
            });
        });
    }
}

/// Runs `body` for every combination of one tap on each axis.
fn combinations(locations: &[Location], chosen: &mut Vec<usize>, body: &mut dyn FnMut(&[usize])) {
    let Some(here) = locations.get(chosen.len()) else { return body(chosen) };
    for k in 0..here.taps.len() {
        chosen.push(k);
        combinations(locations, chosen, body);
        chosen.pop();
    }
}

/// Specialisation of the kernel that sums: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SumSpec {
    dtype: DType,
    /// Sums are added to the sums of earlier parts.
    continues: bool,
    index: ScalarType,
    rank: usize,
}

parameters! {
    SumSpec as s => SumArguments, SumParameters {
        out: Output = s.dtype,
        /// The sums of earlier parts.
        before: Option<Input> = s.continues.then_some(s.dtype),
        grad: Input = s.dtype,
        weights: Input = accumulator(s.dtype),
        /// Where the reads of each pixel begin in the sorted list.
        starts: Input = DType::U32,
        /// Index of each read of the sorted list in the unsorted list, which is that of the
        /// weights.
        positions: Input = DType::U32,
        numel: Index = s.index,
        channels: Index = s.index,
        points: U32,
        /// The range of each pixel's reads to sum: see [`for_each_of_key`].
        part: [U32; 2],
        size: PerAxis = s.rank,
        grid_size: PerAxis = s.rank,
        grad_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
    }
}

/// Sums, for each element of the gradient, over the points that read it.
impl KernelSpec for SumSpec {
    fn name(&self) -> &'static str {
        "grid_sampler_sum"
    }

    fn write<'b>(&self, b: &'b Builder, p: SumParameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &p.size, false);
            let image = p.size.iter().fold(b.u32(1), |product, &n| product * n.cast(ScalarType::U32));
            let key = at.batch.cast(ScalarType::U32) * image
                + pixel_number(&at.at, &p.size, ScalarType::U32).bitcast(ScalarType::U32);
            let offset = p.out_strides.element(&at);
            let sum = b.var(p.before.map_or(b.constant_of(self.dtype.compute(), 0.0), |sums| sums.load(offset)));
            for_each_of_key(b, p.starts, key, p.part, |entry| {
                let read = p.positions.load(entry);
                let point = Coordinates::new((read % p.points).cast(index), b.int(index, 1), &p.grid_size, false);
                let output_point = Coordinates { channel: at.channel, ..point };
                sum.set(sum.get() + p.weights.load(read) * p.grad.load(p.grad_strides.element(&output_point)));
            });
            p.out.store(offset, sum.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use crate::spatial::grid_sampler::location::{Interpolation, Padding};

    #[test]
    fn kernels_are_valid() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            for (dtype, index, rank, padding) in [
                (DType::F16, ScalarType::U32, 2, Padding::Zeros),
                (DType::F64, ScalarType::U64, 2, Padding::Reflection),
                (DType::F32, ScalarType::U32, 3, Padding::Border),
            ] {
                let mode = Mode { interpolation, padding, align_corners: true, has_depth: false, backward: true };
                accepted(&ReadsSpec { mode, dtype, index, rank }.build());
                accepted(&SumSpec { dtype, continues: true, index, rank }.build());
            }
        }
    }
}
