//! Means of bilinear samples in the bins of regions.
//!
//! (K. He et al., "Mask R-CNN", 2017; position-sensitive regions, in which every bin has separate
//! channels: J. Dai et al., "R-FCN", 2016.)

use crate::context::Context;
use crate::detection::region::{BinPosition, Bins, Grid, GridNumbers, image_number};
use crate::error::Result;
use crate::fault::Fault;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::index_type;
use crate::view::View;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The samples of position-sensitive regions.
pub const POSITION_SENSITIVE_BINS: Bins = Bins::Samples { aligned: true };

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    index: ScalarType,
    bins: Bins,
    /// Position-sensitive: bins have separate channels, whose indices are written too.
    mapped: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        mapping: Option<Output> = s.mapped.then_some(DType::I32),
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

/// Writes the mean of the samples of each bin of regions (`rois`, `[regions, 5]`: the index of an
/// image and two corners) of images (`input`, `[images, channels, height, width]`), both of one
/// floating dtype, to `out` (`[regions, channels, rows, columns]`, contiguous, in their dtype).
/// With a `mapping` (int32, of that shape) every bin has separate channels, whose indices are
/// written to `mapping`.
pub fn align(
    cx: &Context,
    bins: Bins,
    input: &View,
    rois: &View,
    grid: Grid,
    out: &View,
    mapping: Option<&View>,
) -> Result<()> {
    check_loop_iterations(cx, grid.max_samples())?;
    if out.numel() == 0 {
        return Ok(());
    }
    if input.numel() == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    let spec = Spec { dtype: input.dtype, index: index_type(&[input, out]), bins, mapped: mapping.is_some() };
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
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "roi_align"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let bin_position = BinPosition::new(i, p.channels, &p.grid.bins, self.mapped);
            if let Some(mapping) = p.mapping {
                mapping.store(i, bin_position.channel);
            }
            let image = image_number(p.rois, bin_position.region * 5);
            let good = image.ge(0) & image.lt(p.images);
            b.if_(!good, || p.fault.report(image, p.images, 0));
            let sum = b.var(b.constant_of(self.dtype.compute(), 0.0));
            let extents = [0, 1].map(|axis| p.grid.extent(self.bins, p.rois, bin_position.region * 5, axis));
            b.if_(good, || {
                let [height, width] = p.grid.image.map(|n| n.cast(index));
                let plane = (image.cast(index) * p.channels + bin_position.channel) * height * width;
                let [(top, bottom), (left, right)] =
                    [0, 1].map(|axis| extents[axis].visible_range(bin_position.bin[axis]));
                b.for_(top, bottom, 1, |y| {
                    let y = extents[0].taps(extents[0].sample(bin_position.bin[0], y));
                    b.for_(left, right, 1, |x| {
                        let x = extents[1].taps(extents[1].sample(bin_position.bin[1], x));
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
            // Multiplied as floats: the product may exceed an integer.
            let count = extents[0].samples.cast(sum.get().scalar()) * extents[1].samples.cast(sum.get().scalar());
            // A position-sensitive region without samples is NaN, others are 0.
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
