//! Greyscale dilation: the maximum over a window of elements plus the window's own numbers, and
//! where maxima are.
//!
//! Images are `[batch, height, width, channels]`, windows `[height, width, channels]`, contiguous.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{PerAxis, Spatial, for_each, index_type};
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Windows on images. Each field has a number for the height and one for the width.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Distance between windows.
    pub stride: Spatial,
    /// Distance between a window's elements.
    pub dilation: Spatial,
    /// Elements before the first of an image, which no window has.
    pub padding: Spatial,
}

/// What is written for each window.
pub enum Wanted<'t> {
    /// The maximum.
    Maximum(&'t View),
    /// The position of the maximum, the first of equal ones: in the batch of images, or in the
    /// window (int64).
    Position {
        /// The positions.
        out: &'t View,
        /// Whether they are in the window.
        in_window: bool,
    },
}

/// Dilates `input` by `window`, of one floating dtype.
pub fn dilate(cx: &Context, windows: &Windows, input: &View, window: &View, wanted: Wanted) -> Result<()> {
    let (out, kind) = match wanted {
        Wanted::Maximum(out) => (out, Kind::Maximum),
        Wanted::Position { out, in_window: false } => (out, Kind::InImages),
        Wanted::Position { out, in_window: true } => (out, Kind::InWindow),
    };
    if out.numel() == 0 {
        return Ok(());
    }
    let spec = Spec { kind, dtype: input.dtype, index: index_type(&[input, window, out]) };
    let least = match input.dtype {
        DType::F64 => f64::MIN,
        DType::F16 => -65504.0,
        DType::BF16 => f64::from(f32::from_bits(0xff7f_0000)),
        _ => f64::from(f32::MIN),
    };
    let arguments = Arguments {
        out,
        input,
        window,
        numel: out.numel(),
        channels: out.sizes[3],
        count: &out.sizes[1..3],
        size: &input.sizes[1..3],
        kernel: &window.sizes[..2],
        stride: &windows.stride,
        dilation: &windows.dilation,
        padding: &windows.padding,
        least: Number::Double(least),
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// What is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Maximum,
    InImages,
    InWindow,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    kind: Kind,
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = if s.kind == Kind::Maximum { s.dtype } else { DType::I64 },
        input: Input = s.dtype,
        window: Input = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        /// Number of windows.
        count: PerAxis = 2,
        size: PerAxis = 2,
        kernel: PerAxis = 2,
        stride: PerAxis = 2,
        dilation: PerAxis = 2,
        padding: PerAxis = 2,
        /// The maximum of nothing.
        least: InDType = s.dtype,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "dilation"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let [rows, columns] = [0, 1].map(|d| p.count[d].cast(index));
            let (channel, pixel) = (i % p.channels, i / p.channels);
            let (column, above) = (pixel % columns, pixel / columns);
            let (row, image) = (above % rows, above / rows);
            let first: Vec<Value> = [row, column]
                .into_iter()
                .enumerate()
                .map(|(d, at)| at.cast(ScalarType::I32) * p.stride[d] - p.padding[d])
                .collect();
            let [height, width] = [0, 1].map(|d| p.size[d].cast(index));
            let in_images = |y: Value<'b>, x: Value<'b>| {
                ((image * height + y.cast(index)) * width + x.cast(index)) * p.channels + channel
            };
            let in_window = |y: Value<'b>, x: Value<'b>| {
                (y.cast(index) * p.kernel[1].cast(index) + x.cast(index)) * p.channels + channel
            };
            let best = b.var(p.least);
            let zero = b.i32(0);
            let start = match self.kind {
                Kind::InWindow => channel,
                _ => in_images(first[0].max(0), first[1].max(0)),
            };
            let chosen = b.var(start);
            let ranges = [0, 1].map(|d| [zero, p.kernel[d], b.i32(1)]);
            for_each(b, &ranges, |tap| {
                let at: Vec<Value> = (0..2).map(|d| first[d] + tap[d] * p.dilation[d]).collect();
                let inside = (0..2).fold(b.bool(true), |ok, d| ok & at[d].ge(0) & at[d].lt(p.size[d]));
                b.if_(inside, || {
                    let position = in_images(at[0], at[1]);
                    let place = in_window(tap[0], tap[1]);
                    let value = p.input.load(position) + p.window.load(place);
                    b.if_(value.gt(best.get()), || {
                        best.set(value);
                        chosen.set(if self.kind == Kind::InWindow { place } else { position });
                    });
                });
            });
            match self.kind {
                Kind::Maximum => p.out.store(i, best.get()),
                _ => p.out.store(i, chosen.get().cast(ScalarType::I64)),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::F16, ScalarType::U32), (DType::F32, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for kind in [Kind::Maximum, Kind::InImages, Kind::InWindow] {
                crate::primitives::validate::accepted(&Spec { kind, dtype, index }.build());
            }
        }
    }
}
