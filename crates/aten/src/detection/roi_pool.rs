//! roi_pool, the maxima of the bins of regions, and ps_roi_pool, position-sensitive means.
//!
//! (R. Girshick, "Fast R-CNN", 2015; J. Dai et al., "R-FCN", 2016.)

use crate::detection::region::{Images, Pooled, check_operands, position_sensitive_channels, result_sizes};
use crate::detection::region_gradient;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::detection::region_gradient::Channels;
use dml_compute::detection::roi_pool::{self, Pooling};
use dml_compute::movement::copy::fill_with;
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    pool(input, rois, {Pooled}; Pooling::Largest) {
        "torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    }
    pool_backward(grad, rois, argmax, {Pooled}, {Images}; Pooling::Largest) {
        "torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
    pool(input, rois, {Pooled}; Pooling::PositionSensitiveMean) {
        "torchvision::ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)",
    }
    pool_backward(grad, rois, channel_mapping, {Pooled}, {Images}; Pooling::PositionSensitiveMean) {
        "torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
    }
}

fn pool(call: &mut Call, input: &View, rois: &View, pooled: Pooled, pooling: Pooling) -> Result<()> {
    let name = call.name;
    check_operands(input, rois, name)?;
    let grid = pooled.grid([input.sizes[2], input.sizes[3]], 0);
    let channels = match pooling {
        Pooling::Largest => input.sizes[1],
        Pooling::PositionSensitiveMean => position_sensitive_channels(&grid, input.sizes[1])?,
    };
    let sizes = result_sizes(&grid, rois, channels, name)?;
    check_loop_iterations(call, grid.max_samples())?;
    let (out, number) = (call.empty(input.dtype, &sizes)?, call.empty(DType::I32, &sizes)?);
    if out.numel() > 0 && input.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
        fill_with(call, &number, Number::Int(-1))?;
    } else if out.numel() > 0 {
        roi_pool::pool(call, pooling, input, rois, grid, &out, &number)?;
    }
    call.ret(out);
    call.ret(number);
    Ok(())
}

/// `number` is the second result of [`pool`]; position-sensitive channels are computed without it.
fn pool_backward(
    call: &mut Call,
    grad: &View,
    rois: &View,
    number: &View,
    pooled: Pooled,
    images: Images,
    pooling: Pooling,
) -> Result<()> {
    let Images { batch_size, channels, height, width } = images;
    let grid = pooled.grid([height, width], 0);
    let (by, argmax) = match pooling {
        Pooling::Largest => (Channels::Same, Some(number)),
        Pooling::PositionSensitiveMean => (Channels::ByPosition, None),
    };
    region_gradient::run(call, grad, rois, pooling.bins(), grid, [batch_size, channels], by, argmax)
}
