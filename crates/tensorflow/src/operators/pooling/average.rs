//! Means over windows, without padding, and their gradients.

use super::window::{Pooling, operator};
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, HALF_FLOATS};
use crate::require;
use dml_compute::spatial::pooling::average::{self, Divisor};

/// `AvgPool` and the like.
fn forward(call: &Call, pooling: &Pooling) -> Result<()> {
    let input = call.input(0)?;
    let (windows, sizes) = pooling.windows(&input.sizes)?;
    let out = call.output(0, &sizes)?;
    let [from, to] = [&input, &out].map(|t| pooling.format.image(t));
    Ok(average::pool(&call.cx(), false, &windows, Divisor::Input, 0, &from, &to)?)
}

/// `AvgPoolGrad` and the like: input 0, on the host, is the shape of the result.
fn gradient(call: &Call, pooling: &Pooling) -> Result<()> {
    let sizes = call.host_ints(0)?;
    let grad = call.input(1)?;
    require!(sizes.iter().all(|&n| n >= 0), "orig_input_shape must not be negative: {sizes:?}");
    let (windows, expected) = pooling.windows(&sizes)?;
    require!(grad.sizes == expected, "Expected grad shape to be {expected:?}, but got {:?}", grad.sizes);
    let out = call.output(0, &sizes)?;
    let [from, to] = [&grad, &out].map(|t| pooling.format.image(t));
    Ok(average::pool(&call.cx(), true, &windows, Divisor::Input, 0, &from, &to)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        operator("AvgPool", 2, forward, FLOATS),
        operator("AvgPoolGrad", 2, gradient, FLOATS).on_host(&["orig_input_shape"]),
        operator("AvgPool3D", 3, forward, HALF_FLOATS),
        operator("AvgPool3DGrad", 3, gradient, HALF_FLOATS).on_host(&["orig_input_shape"]),
    ]
}
