//! roi_align and ps_roi_align: means of bilinear samples in the bins of regions.
//!
//! (K. He et al., "Mask R-CNN", 2017; position-sensitive regions, in which every bin has channels
//! of its own: J. Dai et al., "R-FCN", 2016.)

use crate::detection::region::{channels_by_position, check_operands, result_sizes};
use crate::detection::region_gradient;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::detection::region::{Bins, Grid};
use dml_compute::detection::region_gradient::Channels;
use dml_compute::detection::roi_align::{BY_POSITION, Spec, run};
use dml_compute::spatial::geometry::index_type;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned) {
        "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    }
    align_backward(grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned) {
        "torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
    }
    align_by_position(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio) {
        "torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
    }
    align_by_position_backward(grad, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size, channels, height, width) {
        "torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
}

fn align(
    call: &mut Call,
    input: &View,
    rois: &View,
    scale: f64,
    rows: i64,
    columns: i64,
    samples: i64,
    aligned: bool,
) -> Result<()> {
    check_operands(input, rois, "roi_align")?;
    let grid = Grid { scale, image: [input.sizes[2], input.sizes[3]], bins: [rows, columns], samples };
    let out = call.empty(input.dtype, &result_sizes(&grid, rois, input.sizes[1], "roi_align")?)?;
    let spec =
        Spec { dtype: input.dtype, index: index_type(&[input, &out]), bins: Bins::Samples { aligned }, mapped: false };
    run(call, &spec, input, rois, grid, &out, None)?;
    call.ret(out);
    Ok(())
}

fn align_by_position(
    call: &mut Call,
    input: &View,
    rois: &View,
    scale: f64,
    rows: i64,
    columns: i64,
    samples: i64,
) -> Result<()> {
    check_operands(input, rois, "ps_roi_align")?;
    let grid = Grid { scale, image: [input.sizes[2], input.sizes[3]], bins: [rows, columns], samples };
    let channels = channels_by_position(&grid, input.sizes[1])?;
    let sizes = result_sizes(&grid, rois, channels, "ps_roi_align")?;
    let (out, mapping) = (call.empty(input.dtype, &sizes)?, call.empty(DType::I32, &sizes)?);
    let spec = Spec { dtype: input.dtype, index: index_type(&[input, &out]), bins: BY_POSITION, mapped: true };
    run(call, &spec, input, rois, grid, &out, Some(&mapping))?;
    call.ret(out);
    call.ret(mapping);
    Ok(())
}

fn align_backward(
    call: &mut Call,
    grad: &View,
    rois: &View,
    scale: f64,
    rows: i64,
    columns: i64,
    batch: i64,
    channels: i64,
    height: i64,
    width: i64,
    samples: i64,
    aligned: bool,
) -> Result<()> {
    let grid = Grid { scale, image: [height, width], bins: [rows, columns], samples };
    let bins = Bins::Samples { aligned };
    region_gradient::run(call, grad, rois, bins, grid, [batch, channels], Channels::Same, None)
}

fn align_by_position_backward(
    call: &mut Call,
    grad: &View,
    rois: &View,
    scale: f64,
    rows: i64,
    columns: i64,
    samples: i64,
    batch: i64,
    channels: i64,
    height: i64,
    width: i64,
) -> Result<()> {
    let grid = Grid { scale, image: [height, width], bins: [rows, columns], samples };
    region_gradient::run(call, grad, rois, BY_POSITION, grid, [batch, channels], Channels::ByPosition, None)
}
