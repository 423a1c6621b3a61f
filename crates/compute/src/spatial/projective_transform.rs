//! Images under projective maps: a pixel of the result is read where the map of its coordinates
//! points to.
//!
//! Images are `[batch, height, width, channels]`, contiguous.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{PerAxis, index_type};
use crate::view::View;
use dml_engine::interface::{F32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// What is beyond the edges of an image.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// A number.
    Constant,
    /// The image reflected at its edges: `d c b a | a b c d | d c b a`.
    Reflect,
    /// The image again.
    Wrap,
    /// The nearest pixel.
    Nearest,
}

/// A resampling of images.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resampling {
    /// From four pixels; else the nearest one.
    pub bilinear: bool,
    /// What is beyond the edges.
    pub beyond: Beyond,
}

/// Writes to `out` the images `input` under the maps `transforms`: eight numbers (float32) for each
/// image, or for all, `(x, y)` to `((a0 x + a1 y + a2) / k, (a3 x + a4 y + a5) / k)` with
/// `k = a6 x + a7 y + 1`. `fill` is what pixels without a place, and the constant beyond edges,
/// are.
pub fn transform(
    cx: &Context,
    resampling: Resampling,
    input: &View,
    transforms: &View,
    fill: f32,
    out: &View,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let spec = Spec { resampling, dtype: input.dtype, index: index_type(&[input, out]) };
    let arguments = Arguments {
        out,
        input,
        transforms,
        numel: out.numel(),
        channels: out.sizes[3],
        output: &out.sizes[1..3],
        size: &input.sizes[1..3],
        step: if transforms.sizes[0] == 1 { 0 } else { 8 },
        fill,
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    resampling: Resampling,
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        input: Input = s.dtype,
        transforms: Input = DType::F32,
        numel: Index = s.index,
        channels: Index = s.index,
        output: PerAxis = 2,
        size: PerAxis = 2,
        /// Distance between the maps of images.
        step: Index = s.index,
        fill: F32,
    }
}

/// The whole part of a quotient of numbers that are not negative.
fn whole<'b>(x: Value<'b>, by: Value<'b>) -> Value<'b> {
    (x / by).floor()
}

impl Beyond {
    /// The coordinate of an image of `len` pixels where a coordinate is read.
    fn inside<'b>(self, x: Value<'b>, len: Value<'b>) -> Value<'b> {
        let (zero, last) = (x.like(0.0), len - 1.0);
        let clamped = |x: Value<'b>| x.gt(0.0).select(x.gt(last).select(last, x), zero);
        match self {
            Beyond::Constant => x,
            Beyond::Nearest => clamped(x),
            Beyond::Reflect => {
                let period = 2.0 * len;
                let below = x + period * whole(-x, period);
                let below = below.lt(-len).select(below + period, -below - 1.0);
                let above = x - period * whole(x, period);
                let above = above.ge(len).select(period - above - 1.0, above);
                let moved = x.lt(0.0).select(below, x.gt(last).select(above, x));
                len.le(1.0).select(zero, clamped(moved))
            }
            Beyond::Wrap => {
                let gap = len.le(1.0).select(x.like(1.0), last);
                let below = x + len * (whole(-x, gap) + 1.0);
                let above = x - len * whole(x, gap);
                let moved = x.lt(0.0).select(below, x.gt(last).select(above, x));
                len.le(1.0).select(zero, clamped(moved))
            }
        }
    }
}

/// The nearest integer, halves away from zero.
fn nearest(x: Value<'_>) -> Value<'_> {
    x.lt(0.0).select((x - 0.5).ceil(), (x + 0.5).floor())
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "projective_transform"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (index, beyond) = (self.index, self.resampling.beyond);
        let number = if self.dtype == DType::F64 { ScalarType::F64 } else { ScalarType::F32 };
        let compute = self.dtype.compute();
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let f32 = |x: Value<'b>| x.cast(ScalarType::F32);
            let [rows, columns] = [0, 1].map(|d| p.output[d].cast(index));
            let (channel, pixel) = (i % p.channels, i / p.channels);
            let (column, above) = (pixel % columns, pixel / columns);
            let (row, image) = (above % rows, above / rows);
            let (to_x, to_y) = (f32(column), f32(row));
            let a: Vec<Value> = (0..8u32).map(|k| p.transforms.load(image * p.step + k)).collect();
            let divisor = a[6] * to_x + a[7] * to_y + 1.0;
            let fill = p.fill.cast(compute);
            let value = b.var(fill);
            b.if_(!divisor.eq(0.0), || {
                let [height, width] = [0, 1].map(|d| f32(p.size[d]));
                let x = beyond.inside((a[0] * to_x + a[1] * to_y + a[2]) / divisor, width);
                let y = beyond.inside((a[3] * to_x + a[4] * to_y + a[5]) / divisor, height);
                let load = |y: Value<'b>, x: Value<'b>| {
                    let element = b.var(fill);
                    b.if_(y.ge(0.0) & y.lt(height) & x.ge(0.0) & x.lt(width), || {
                        let [y, x] = [y, x].map(|at| at.cast(ScalarType::I32).cast(index));
                        let [height, width] = [0, 1].map(|d| p.size[d].cast(index));
                        element.set(p.input.load(((image * height + y) * width + x) * p.channels + channel));
                    });
                    element.get()
                };
                if !self.resampling.bilinear {
                    value.set(load(nearest(y), nearest(x)));
                    return;
                }
                let (top, left) = (y.floor(), x.floor());
                let (bottom, right) = (top + 1.0, left + 1.0);
                let between = |low: Value<'b>, high: Value<'b>, shares: [Value<'b>; 2]| {
                    let [of_low, of_high] = shares.map(|share| share.cast(number));
                    of_low * low + of_high * high
                };
                let line = |y: Value<'b>| {
                    let ends = [load(y, left), load(y, right)].map(|x| x.cast(number));
                    between(ends[0], ends[1], [right - x, x - left])
                };
                value.set(between(line(top), line(bottom), [bottom - y, y - top]).cast(compute));
            });
            p.out.store(i, value.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::F16, ScalarType::U32), (DType::F64, ScalarType::U64), (DType::U8, ScalarType::U32)]
        {
            for beyond in [Beyond::Constant, Beyond::Reflect, Beyond::Wrap, Beyond::Nearest] {
                for bilinear in [false, true] {
                    let resampling = Resampling { bilinear, beyond };
                    crate::primitives::validate::accepted(&Spec { resampling, dtype, index }.build());
                }
            }
        }
    }
}
