//! roi_align and ps_roi_align: means of bilinear samples in the bins of regions.
//!
//! (K. He et al., "Mask R-CNN", 2017; position-sensitive regions, in which every bin has separate
//! channels: J. Dai et al., "R-FCN", 2016.)

use crate::detection::region::{Images, Pooled, check_operands, position_sensitive_channels, result_sizes};
use crate::detection::region_gradient;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::detection::region::Bins;
use dml_compute::detection::region_gradient::Channels;
use dml_compute::detection::roi_align::{self, POSITION_SENSITIVE_BINS};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    align(input, rois, {Pooled}, sampling_ratio, aligned) {
        "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    }
    align_backward(grad, rois, {Pooled}, {Images}, sampling_ratio, aligned) {
        "torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
    }
    align_by_position(input, rois, {Pooled}, sampling_ratio) {
        "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
    }
    align_by_position_backward(grad, rois, {Pooled}, {Images}, sampling_ratio) {
        "torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
}

fn align(call: &mut Call, input: &View, rois: &View, pooled: Pooled, samples: i64, aligned: bool) -> Result<()> {
    check_operands(input, rois, "roi_align")?;
    let grid = pooled.grid([input.sizes[2], input.sizes[3]], samples);
    let out = call.empty(input.dtype, &result_sizes(&grid, rois, input.sizes[1], "roi_align")?)?;
    roi_align::align(call, Bins::Samples { aligned }, input, rois, grid, &out, None)?;
    call.ret(out);
    Ok(())
}

fn align_by_position(call: &mut Call, input: &View, rois: &View, pooled: Pooled, samples: i64) -> Result<()> {
    check_operands(input, rois, "ps_roi_align")?;
    let grid = pooled.grid([input.sizes[2], input.sizes[3]], samples);
    let channels = position_sensitive_channels(&grid, input.sizes[1])?;
    let sizes = result_sizes(&grid, rois, channels, "ps_roi_align")?;
    let (out, mapping) = (call.empty(input.dtype, &sizes)?, call.empty(DType::I32, &sizes)?);
    roi_align::align(call, POSITION_SENSITIVE_BINS, input, rois, grid, &out, Some(&mapping))?;
    call.ret(out);
    call.ret(mapping);
    Ok(())
}

fn align_backward(
    call: &mut Call,
    grad: &View,
    rois: &View,
    pooled: Pooled,
    images: Images,
    samples: i64,
    aligned: bool,
) -> Result<()> {
    let Images { batch_size, channels, height, width } = images;
    let grid = pooled.grid([height, width], samples);
    let bins = Bins::Samples { aligned };
    region_gradient::run(call, grad, rois, bins, grid, [batch_size, channels], Channels::Same, None)
}

fn align_by_position_backward(
    call: &mut Call,
    grad: &View,
    rois: &View,
    pooled: Pooled,
    images: Images,
    samples: i64,
) -> Result<()> {
    let Images { batch_size, channels, height, width } = images;
    let grid = pooled.grid([height, width], samples);
    region_gradient::run(
        call,
        grad,
        rois,
        POSITION_SENSITIVE_BINS,
        grid,
        [batch_size, channels],
        Channels::ByPosition,
        None,
    )
}
