//! roi_align and ps_roi_align: means of bilinear samples in the bins of regions.
//!
//! (K. He et al., "Mask R-CNN", 2017; position-sensitive regions, in which every bin has channels
//! of its own: J. Dai et al., "R-FCN", 2016.)

use crate::context::Context;
use crate::detection::region::{Bins, Grid, GridNumbers, Place, image_number};
use crate::error::Result;
use crate::fault::Fault;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// As torchvision has it for regions by position.
pub const BY_POSITION: Bins = Bins::Samples { aligned: true };

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub dtype: DType,
    pub index: ScalarType,
    pub bins: Bins,
    /// Bins have channels of their own, which are written too.
    pub mapped: bool,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        mapping: Option<Output> = s.mapped.then_some(DType::I32),
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

pub fn run(
    cx: &Context,
    spec: &Spec,
    input: &View,
    rois: &View,
    grid: Grid,
    out: &View,
    mapping: Option<&View>,
) -> Result<()> {
    check_turns(cx, grid.members())?;
    if out.numel() == 0 {
        return Ok(());
    }
    if input.numel() == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    let arguments = Arguments {
        out,
        mapping,
        input: &as_contiguous(cx, input)?,
        rois: &as_contiguous(cx, rois)?,
        fault: cx.fault_of_index(),
        numel: out.numel(),
        images: input.sizes[0] as i32,
        channels: input.sizes[1],
        grid,
    };
    cx.run_threads(spec, &arguments, out.numel() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "roi_align"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let place = Place::new(i, p.channels, &p.grid.bins, self.mapped);
            if let Some(mapping) = p.mapping {
                mapping.store(i, place.channel);
            }
            let image = image_number(p.rois, place.region * 5);
            let good = image.ge(0) & image.lt(p.images);
            b.if_(!good, || p.fault.report(image, p.images, 0));
            let sum = b.var(b.constant_of(self.dtype.compute(), 0.0));
            let extents = [0, 1].map(|axis| p.grid.extent(self.bins, p.rois, place.region * 5, axis));
            b.if_(good, || {
                let [height, width] = p.grid.image.map(|n| n.cast(index));
                let plane = (image.cast(index) * p.channels + place.channel) * height * width;
                let [(top, bottom), (left, right)] = [0, 1].map(|axis| extents[axis].seen(place.bin[axis]));
                b.for_(top, bottom, 1, |y| {
                    let y = extents[0].taps(extents[0].sample(place.bin[0], y));
                    b.for_(left, right, 1, |x| {
                        let x = extents[1].taps(extents[1].sample(place.bin[1], x));
                        b.if_(y.inside & x.inside, || {
                            let read = |row: Value<'b>, column: Value<'b>| {
                                p.input.load(plane + row.cast(index) * width + column.cast(index))
                            };
                            let ([above, below], [before, after]) = (y.weights, x.weights);
                            let value = (above * before) * read(y.low, x.low)
                                + (above * after) * read(y.low, x.high)
                                + (below * before) * read(y.high, x.low)
                                + (below * after) * read(y.high, x.high);
                            sum.set(sum.get() + value);
                        });
                    });
                });
            });
            // As numbers: their product may be beyond an integer.
            let count = extents[0].samples.cast(sum.get().scalar()) * extents[1].samples.cast(sum.get().scalar());
            // A region by position that holds no sample is NaN in torchvision, another one 0.
            let count = if self.mapped { count } else { count.max(1.0) };
            p.out.store(i, sum.get() / count);
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
            for (aligned, mapped) in [(false, false), (true, false), (true, true)] {
                let spec = Spec { dtype, index, bins: Bins::Samples { aligned }, mapped };
                crate::primitives::validate::accepted(&spec.build());
            }
        }
    }
}
