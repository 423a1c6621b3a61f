//! Activations and gradients of elementwise functions.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FIELDS, FLOATS, REALS};
use crate::operators::common::elementwise::{compute, function, inputs, output_like};
use crate::operators::common::functions;
use crate::require;
use dml_compute::Scalar;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::{activation, unary};
use dml_kernel::DType;

/// A function of tensors of one shape, and of numbers.
fn of_one_shape(call: &Call, function: &'static Function, numbers: &[Scalar]) -> Result<()> {
    let inputs = inputs(call)?;
    for input in &inputs[1..] {
        require!(
            input.sizes == inputs[0].sizes,
            "inputs of {} must have the same shape: {:?} vs. {:?}",
            call.operator(),
            inputs[0].sizes,
            input.sizes
        );
    }
    let out = output_like(call, &inputs, &inputs[0].sizes)?;
    compute(&call.cx(), function, &out, &inputs, numbers)
}

/// A gradient, of tensors of one shape.
fn gradient(name: &'static str, function: &'static Function, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| of_one_shape(call, function, &[])).of("T", dtypes)
}

/// An activation with a slope, or its gradient.
fn with_slope(name: &'static str, function: &'static Function) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let slope = Scalar::Double(attributes.float("alpha")?.into());
        Ok(move |call: &Call| of_one_shape(call, function, &[slope]))
    })
    .of("T", FLOATS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("Relu", &activation::RELU, REALS),
        function("Relu6", &functions::RELU6, REALS),
        function("Elu", &functions::ELU, FLOATS),
        function("Selu", &functions::SELU_OF, FLOATS),
        function("Softplus", &functions::SOFTPLUS, FLOATS),
        function("Softsign", &functions::SOFTSIGN, FLOATS),
        function("Sigmoid", &unary::SIGMOID, FIELDS),
        with_slope("LeakyRelu", &activation::LEAKY_RELU),
        with_slope("LeakyReluGrad", &functions::LEAKY_RELU_GRAD),
        gradient("ReluGrad", &functions::RELU_GRAD, REALS),
        gradient("Relu6Grad", &functions::RELU6_GRAD, REALS),
        gradient("EluGrad", &functions::ELU_GRAD, FLOATS),
        gradient("SeluGrad", &functions::SELU_GRAD, FLOATS),
        gradient("SoftplusGrad", &functions::SOFTPLUS_GRAD, FLOATS),
        gradient("SoftsignGrad", &functions::SOFTSIGN_GRAD, FLOATS),
        gradient("SigmoidGrad", &functions::SIGMOID_GRAD, FIELDS),
        gradient("TanhGrad", &functions::TANH_GRAD, FIELDS),
        gradient("InvGrad", &functions::RECIPROCAL_GRAD, FIELDS),
        gradient("ReciprocalGrad", &functions::RECIPROCAL_GRAD, FIELDS),
        gradient("SqrtGrad", &functions::SQRT_GRAD, FIELDS),
        gradient("RsqrtGrad", &functions::RSQRT_GRAD, FIELDS),
    ]
}
