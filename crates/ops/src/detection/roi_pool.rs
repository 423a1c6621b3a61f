//! roi_pool, the largest pixels of the bins of regions, and ps_roi_pool, the means of bins with channels of their own.
//!
//! (R. Girshick, "Fast R-CNN", 2015; J. Dai et al., "R-FCN", 2016.)

use super::region::{Bins, Grid, GridNumbers, Place, check_operands, image_number};
use super::region_gradient::{self, Channels};
use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::operators;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::spatial::geometry::index_type;
use crate::tensor::Tensor;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    pool(input, rois, spatial_scale, pooled_height, pooled_width; Pooling::Largest) {
        "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    }
    pool_backward(grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width; Pooling::Largest) {
        "torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
    pool(input, rois, spatial_scale, pooled_height, pooled_width; Pooling::MeanByPosition) {
        "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    }
    pool_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width; Pooling::MeanByPosition) {
        "torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
}

/// What becomes of a bin's pixels. The second result is an int32 for each bin.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Pooling {
    /// The largest, and its number in the plane.
    Largest,
    /// The mean, and the channel of the input that is the bin's.
    MeanByPosition,
}

impl Pooling {
    fn bins(self) -> Bins {
        Bins::Pixels { closed: self == Pooling::Largest }
    }
}

fn pool(
    call: &mut Call,
    input: &Tensor,
    rois: &Tensor,
    scale: f64,
    rows: i64,
    columns: i64,
    pooling: Pooling,
) -> Result<()> {
    let name = call.name;
    check_operands(input, rois, name)?;
    let grid = Grid { scale, image: [input.sizes[2], input.sizes[3]], bins: [rows, columns], samples: 0 };
    let channels = match pooling {
        Pooling::Largest => input.sizes[1],
        Pooling::MeanByPosition => grid.channels_by_position(input.sizes[1])?,
    };
    let sizes = grid.result_sizes(rois, channels, name)?;
    check_turns(call, grid.members())?;
    let (out, number) = (call.empty(input.dtype, &sizes)?, call.empty(DType::I32, &sizes)?);
    if out.numel() > 0 && input.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
        fill_with(call, &number, Number::Int(-1))?;
    } else if out.numel() > 0 {
        let spec = Spec { dtype: input.dtype, index: index_type(&[input, &out]), pooling };
        let arguments = Arguments {
            out: &out,
            number: &number,
            input: &as_contiguous(call, input)?,
            rois: &as_contiguous(call, rois)?,
            fault: call.fault_of_index(),
            numel: out.numel(),
            images: input.sizes[0] as i32,
            channels: input.sizes[1],
            grid,
        };
        call.run_threads(&spec, &arguments, out.numel() as u64)?;
    }
    call.ret(out);
    call.ret(number);
    Ok(())
}

/// `number` is the second result of [`pool`]; channels by position are found without it.
fn pool_backward(
    call: &mut Call,
    grad: &Tensor,
    rois: &Tensor,
    number: &Tensor,
    scale: f64,
    rows: i64,
    columns: i64,
    batch: i64,
    channels: i64,
    height: i64,
    width: i64,
    pooling: Pooling,
) -> Result<()> {
    let grid = Grid { scale, image: [height, width], bins: [rows, columns], samples: 0 };
    let (by, argmax) = match pooling {
        Pooling::Largest => (Channels::Same, Some(number)),
        Pooling::MeanByPosition => (Channels::ByPosition, None),
    };
    region_gradient::run(call, grad, rois, pooling.bins(), grid, [batch, channels], by, argmax)
}

/// Everything that changes the code.
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
