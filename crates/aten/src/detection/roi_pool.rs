//! roi_pool, the largest pixels of the bins of regions, and ps_roi_pool, the means of bins with
//! channels of their own.
//!
//! (R. Girshick, "Fast R-CNN", 2015; J. Dai et al., "R-FCN", 2016.)

use crate::detection::region::{channels_by_position, check_operands, result_sizes};
use crate::detection::region_gradient;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::detection::region::Grid;
use dml_compute::detection::region_gradient::Channels;
use dml_compute::detection::roi_pool::{Arguments, Pooling, Spec};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::primitives::loops::check_turns;
use dml_compute::scalar::Scalar as Number;
use dml_compute::spatial::geometry::index_type;
use dml_compute::view::View;
use dml_kernel::DType;

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

fn pool(
    call: &mut Call,
    input: &View,
    rois: &View,
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
        Pooling::MeanByPosition => channels_by_position(&grid, input.sizes[1])?,
    };
    let sizes = result_sizes(&grid, rois, channels, name)?;
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
    grad: &View,
    rois: &View,
    number: &View,
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
