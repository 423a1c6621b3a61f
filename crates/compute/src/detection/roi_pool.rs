//! Maxima of the bins of regions, and position-sensitive means.
//!
//! (R. Girshick, "Fast R-CNN", 2015; J. Dai et al., "R-FCN", 2016.)

use crate::context::Context;
use crate::detection::region::{BinPosition, Bins, Grid, GridNumbers, image_number};
use crate::error::Result;
use crate::fault::Fault;
use crate::movement::copy::as_contiguous;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::index_type;
use crate::view::View;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The pooling of a bin's pixels. The second result is an int32 for each bin.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The maximum, and its index in the plane.
    Largest,
    /// The mean, and the bin's channel in the input.
    PositionSensitiveMean,
}

impl Pooling {
    /// The pixels of bins.
    pub fn bins(self) -> Bins {
        Bins::Pixels { closed: self == Pooling::Largest }
    }
}

/// Pools the bins of regions (`rois`, `[regions, 5]`: the index of an image and two corners) of
/// images (`input`, `[images, channels, height, width]`), of one floating dtype and not empty, to
/// `out` (`[regions, channels, rows, columns]`, contiguous, in their dtype) and `number` (int32, of
/// that shape).
pub fn pool(
    cx: &Context,
    pooling: Pooling,
    input: &View,
    rois: &View,
    grid: Grid,
    out: &View,
    number: &View,
) -> Result<()> {
    let spec = Spec { dtype: input.dtype, index: index_type(&[input, out]), pooling };
    let arguments = Arguments {
        out,
        number,
        input: &as_contiguous(cx, input)?,
        rois: &as_contiguous(cx, rois)?,
        fault: cx.fault_of_index(),
        numel: out.numel(),
        images: input.sizes[0] as i32,
        channels: input.sizes[1],
        grid,
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    index: ScalarType,
    pooling: Pooling,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        number: Output = DType::I32,
        input: Input = s.dtype,
        rois: Input = s.dtype,
        fault: Fault,
        numel: Index = s.index,
        /// Number of the input's images.
        images: I32,
        channels: Index = s.index,
        grid: GridNumbers = s.dtype,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "roi_pool"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let bin_position =
                BinPosition::new(i, p.channels, &p.grid.bins, self.pooling == Pooling::PositionSensitiveMean);
            let image = image_number(p.rois, bin_position.region * 5);
            let good = image.ge(0) & image.lt(p.images);
            b.if_(!good, || p.fault.report(image, p.images, 0));
            let [(top, bottom), (left, right)] = [0, 1].map(|axis| {
                p.grid
                    .extent(self.pooling.bins(), p.rois, bin_position.region * 5, axis)
                    .visible_range(bin_position.bin[axis])
            });
            let some = good & top.lt(bottom) & left.lt(right);
            let zero = b.constant_of(self.dtype.compute(), 0.0);
            let (value, number) = (b.var(zero), b.var(b.i32(-1)));
            if self.pooling == Pooling::Largest {
                // The search starts at the smallest f32, and does not find NaN.
                value.set(some.select(zero.like(f64::from(f32::MIN)), zero));
            }
            b.if_(some, || {
                let [height, width] = p.grid.image.map(|n| n.cast(index));
                let plane = (image.cast(index) * p.channels + bin_position.channel) * height * width;
                b.for_(top, bottom, 1, |y| {
                    b.for_(left, right, 1, |x| {
                        let pixel = y.cast(index) * width + x.cast(index);
                        let element = p.input.load(plane + pixel);
                        match self.pooling {
                            Pooling::PositionSensitiveMean => value.set(value.get() + element),
                            Pooling::Largest => b.if_(element.gt(value.get()), || {
                                value.set(element);
                                number.set(pixel.cast(ScalarType::I32));
                            }),
                        }
                    });
                });
                if self.pooling == Pooling::PositionSensitiveMean {
                    let area = (bottom - top).cast(zero.scalar()) * (right - left).cast(zero.scalar());
                    value.set(value.get() / area);
                }
            });
            p.out.store(i, value.get());
            match self.pooling {
                Pooling::Largest => p.number.store(i, number.get()),
                Pooling::PositionSensitiveMean => p.number.store(i, bin_position.channel),
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
            for pooling in [Pooling::Largest, Pooling::PositionSensitiveMean] {
                crate::primitives::validate::accepted(&Spec { dtype, index, pooling }.build());
            }
        }
    }
}
