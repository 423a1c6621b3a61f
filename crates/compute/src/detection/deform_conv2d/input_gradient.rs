//! The gradient of the images.
//!
//! Every point lists the pixels that it reads and their weights, the list is sorted by pixel, and
//! each element of the gradient sums its part of the list: no float atomics, and the same order in
//! every run.

use crate::context::Context;
use crate::detection::deform_conv2d::geometry::{Geometry, GeometryNumbers};
use crate::dtype::accumulator;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::radix_sort;
use crate::primitives::segments::{self, for_each_of_key};
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::index_type;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Pixels that a point reads.
const TAPS: i64 = 4;

/// Writes the gradient of the images, from the gradient of the columns. All tensors are contiguous.
pub fn run(cx: &Context, g: &Geometry, columns: &View, offset: &View, mask: Option<&View>, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (dtype, points) = (out.dtype, g.points());
    let (reads, pixels) = (points * TAPS, g.batch * g.offset_groups * g.image[0] * g.image[1]);
    if reads == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    check!(
        pixels < i64::from(u32::MAX) && reads < i64::from(i32::MAX),
        TooLarge,
        "deform_conv2d: {points} points and {pixels} pixels are more than dml can sort"
    );
    let (keys, weights) = (cx.empty(DType::U32, &[reads])?, cx.empty(accumulator(dtype), &[reads])?);
    let spec = ReadsSpec { dtype, index: index_type(&[offset]), masked: mask.is_some() };
    let arguments = ReadsArguments {
        keys: &keys,
        weights: &weights,
        offset,
        mask,
        points: points as u32,
        pixels: pixels as u32,
        geometry: g,
    };
    cx.run_threads(&spec, &arguments, points as u64)?;

    let (keys, positions) = radix_sort::sort(cx, &keys, pixels as u32)?;
    let starts = segments::starts(cx, &keys, pixels as u32)?;
    let index = index_type(&[columns, out]);
    // A pixel is read by the points of its own image and offset group.
    for (i, part) in segments::parts(cx, reads / (g.batch * g.offset_groups)).enumerate() {
        let continues = i > 0;
        let spec = SumSpec { dtype, continues, index };
        let arguments = SumArguments {
            out,
            before: continues.then_some(out),
            columns,
            weights: &weights,
            starts: &starts,
            positions: &positions,
            numel: out.numel(),
            points: points as u32,
            part,
            geometry: g,
        };
        cx.run_threads(&spec, &arguments, out.numel() as u64)?;
    }
    Ok(())
}

/// Specialisation of the kernel that lists reads: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReadsSpec {
    dtype: DType,
    index: ScalarType,
    masked: bool,
}

parameters! {
    ReadsSpec as s => ReadsArguments, ReadsParameters {
        keys: Output = DType::U32,
        weights: Output = accumulator(s.dtype),
        offset: Input = s.dtype,
        mask: Option<Input> = s.masked.then_some(s.dtype),
        points: U32,
        /// Number of pixels of all offset groups of all images: the key of a read outside of the
        /// image.
        pixels: U32,
        geometry: GeometryNumbers,
    }
}

/// Lists the reads of every point: for each of the four pixels in turn, the pixel of each point,
/// and the weight.
impl KernelSpec for ReadsSpec {
    fn name(&self) -> &'static str {
        "deform_reads"
    }

    fn write<'b>(&self, b: &'b Builder, p: ReadsParameters<'b>) {
        let g = &p.geometry;
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.points), || {
            let number = i.cast(self.index);
            let point = g.point(number);
            let [y, x] = g.locate(&point, p.offset);
            let [height, width] = g.image.map(|n| n.cast(ScalarType::U32));
            let groups = g.channels.cast(self.index) / g.group_channels(self.index);
            let first = (point.image * groups + point.group).cast(ScalarType::U32) * height * width;
            let scale = p.mask.map(|mask| mask.load(number));
            let mut read = i;
            for ((row, row_there), down) in y.taps.into_iter().zip(y.weights()) {
                for ((column, column_there), across) in x.taps.into_iter().zip(x.weights()) {
                    let pixel = first + row.cast(ScalarType::U32) * width + column.cast(ScalarType::U32);
                    p.keys.store(read, (row_there & column_there).select(pixel, p.pixels));
                    let weight = down * across;
                    p.weights.store(read, scale.map_or(weight, |scale| scale * weight));
                    read = read + p.points;
                }
            }
        });
    }
}

/// Specialisation of the kernel that sums: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SumSpec {
    dtype: DType,
    /// Sums are added to the sums of earlier parts.
    continues: bool,
    index: ScalarType,
}

parameters! {
    SumSpec as s => SumArguments, SumParameters {
        out: Output = s.dtype,
        /// The sums of earlier parts.
        before: Option<Input> = s.continues.then_some(s.dtype),
        columns: Input = s.dtype,
        weights: Input = accumulator(s.dtype),
        /// Where the reads of each pixel begin in the sorted list.
        starts: Input = DType::U32,
        /// Index of each read of the sorted list in the unsorted list, which is that of the
        /// weights.
        positions: Input = DType::U32,
        numel: Index = s.index,
        points: U32,
        /// The range of each pixel's reads to sum: see [`for_each_of_key`].
        part: [U32; 2],
        geometry: GeometryNumbers,
    }
}

/// Sums, for each element of the gradient, over the points that read it.
impl KernelSpec for SumSpec {
    fn name(&self) -> &'static str {
        "deform_sum"
    }

    fn write<'b>(&self, b: &'b Builder, p: SumParameters<'b>) {
        let (index, g) = (self.index, &p.geometry);
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let [height, width] = g.image.map(|n| n.cast(index));
            let (plane, pixel) = (i / (height * width), i % (height * width));
            let own = g.group_channels(index);
            // A plane is a channel of an image. An offset group is `own` consecutive planes.
            let channel = plane % g.channels.cast(index);
            let image = plane / g.channels.cast(index);
            let key = ((plane / own) * height * width + pixel).cast(ScalarType::U32);
            let (taps, positions) = (g.taps(index), g.positions(index));
            let sum = b.var(p.before.map_or(b.constant_of(self.dtype.compute(), 0.0), |sums| sums.load(i)));
            for_each_of_key(b, p.starts, key, p.part, |entry| {
                let read = p.positions.load(entry);
                let point = (read % p.points).cast(index);
                let from = g.column(channel, (point / positions) % taps, image, point % positions);
                sum.set(sum.get() + p.weights.load(read) * p.columns.load(from));
            });
            p.out.store(i, sum.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, masked) in [
            (DType::F16, ScalarType::U32, true),
            (DType::F32, ScalarType::U64, false),
            (DType::F64, ScalarType::U32, true),
        ] {
            accepted(&ReadsSpec { dtype, index, masked }.build());
            accepted(&SumSpec { dtype, continues: true, index }.build());
        }
    }
}
