//! Biases of channels.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, FLOATS_AND_I32};
use crate::require;
use dml_compute::pointwise::arithmetic;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Dims, View};

/// Whether channels are dimension 1; else the last one.
fn channels_first(attributes: &Attributes) -> Result<bool> {
    let format = attributes.string("data_format")?;
    require!(matches!(format.as_str(), "NHWC" | "NCHW"), "Invalid data format {format}");
    Ok(format == "NCHW")
}

/// `value + bias`, with the bias along dimension `channel`.
fn add(call: &Call, channels_first: bool) -> Result<()> {
    let [value, bias] = [call.input(0)?, call.input(1)?];
    require!(value.dim() >= 2, "Input tensor must be at least 2D: {:?}", value.sizes);
    require!(bias.dim() == 1, "Biases must be 1D: {:?}", bias.sizes);
    let channel = if channels_first { 1 } else { value.dim() - 1 };
    require!(
        bias.sizes[0] == value.sizes[channel],
        "Must provide as many biases as the last dimension of the input tensor: {:?} vs. {:?}",
        bias.sizes,
        value.sizes
    );
    let mut strides = Dims::from_elem(0, value.dim());
    strides[channel] = bias.strides[0];
    let bias = bias.as_strided(&value.sizes, &strides, 0);
    let out = call.output_over(&[0], 0, &value.sizes)?;
    let dtype = value.dtype;
    Ok(kernel::run(&call.cx(), &arithmetic::ADD, &[&out], &[Input::Tensor(value), Input::Tensor(bias)], dtype)?)
}

/// `BiasAdd`.
fn bias_add(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let channels_first = channels_first(attributes)?;
    Ok(move |call: &Call| add(call, channels_first))
}

/// `BiasAddGrad`: the sum over all other dimensions.
fn bias_add_grad(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let channels_first = channels_first(attributes)?;
    Ok(move |call: &Call| {
        let grad = call.input(0)?;
        require!(grad.dim() >= 2, "Input tensor must be at least 2D: {:?}", grad.sizes);
        let channel = if channels_first { 1 } else { grad.dim() - 1 };
        let out: View = call.output(0, &[grad.sizes[channel]])?;
        let others: Vec<i64> = (0..grad.dim()).filter(|&d| d != channel).map(|d| d as i64).collect();
        Ok(sum_into(&call.cx(), &grad, &out, Axes::of_dims(&others, grad.dim(), false))?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("BiasAdd", bias_add).of("T", FLOATS_AND_I32),
        Operator::plain("BiasAddV1", |call: &Call| add(call, false)).of("T", FLOATS_AND_I32),
        Operator::new("BiasAddGrad", bias_add_grad).of("T", FLOATS),
    ]
}
