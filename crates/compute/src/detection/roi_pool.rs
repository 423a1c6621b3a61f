//! roi_pool, the largest pixels of the bins of regions, and ps_roi_pool, the means of bins with
//! channels of their own.
//!
//! (R. Girshick, "Fast R-CNN", 2015; J. Dai et al., "R-FCN", 2016.)

use crate::detection::region::{Bins, GridNumbers, Place, image_number};
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// What becomes of a bin's pixels. The second result is an int32 for each bin.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The largest, and its number in the plane.
    Largest,
    /// The mean, and the channel of the input that is the bin's.
    MeanByPosition,
}

impl Pooling {
    pub fn bins(self) -> Bins {
        Bins::Pixels { closed: self == Pooling::Largest }
    }
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub dtype: DType,
    pub index: ScalarType,
    pub pooling: Pooling,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        number: Output = DType::I32,
        input: Input = s.dtype,
        rois: Input = s.dtype,
        fault: Fault,
        numel: Index = s.index,
        /// Of the input.
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
            let place = Place::new(i, p.channels, &p.grid.bins, self.pooling == Pooling::MeanByPosition);
            let image = image_number(p.rois, place.region * 5);
            let good = image.ge(0) & image.lt(p.images);
            b.if_(!good, || p.fault.report(image, p.images, 0));
            let [(top, bottom), (left, right)] = [0, 1]
                .map(|axis| p.grid.extent(self.pooling.bins(), p.rois, place.region * 5, axis).seen(place.bin[axis]));
            let some = good & top.lt(bottom) & left.lt(right);
            let zero = b.constant_of(self.dtype.compute(), 0.0);
            let (value, number) = (b.var(zero), b.var(b.i32(-1)));
            if self.pooling == Pooling::Largest {
                // Nothing below the smallest f32 is found, and no NaN.
                value.set(some.select(zero.like(f64::from(f32::MIN)), zero));
            }
            b.if_(some, || {
                let [height, width] = p.grid.image.map(|n| n.cast(index));
                let plane = (image.cast(index) * p.channels + place.channel) * height * width;
                b.for_(top, bottom, 1, |y| {
                    b.for_(left, right, 1, |x| {
                        let pixel = y.cast(index) * width + x.cast(index);
                        let element = p.input.load(plane + pixel);
                        match self.pooling {
                            Pooling::MeanByPosition => value.set(value.get() + element),
                            Pooling::Largest => b.if_(element.gt(value.get()), || {
                                value.set(element);
                                number.set(pixel.cast(ScalarType::I32));
                            }),
                        }
                    });
                });
                if self.pooling == Pooling::MeanByPosition {
                    let area = (bottom - top).cast(zero.scalar()) * (right - left).cast(zero.scalar());
                    value.set(value.get() / area);
                }
            });
            p.out.store(i, value.get());
            match self.pooling {
                Pooling::Largest => p.number.store(i, number.get()),
                Pooling::MeanByPosition => p.number.store(i, place.channel),
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
            for pooling in [Pooling::Largest, Pooling::MeanByPosition] {
                crate::primitives::validate::accepted(&Spec { dtype, index, pooling }.build());
            }
        }
    }
}
