//! Comparisons, logic, and the kinds of floats.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, FLOATS, REALS, WIDE_FLOATS};
use crate::operators::common::elementwise::{compute, elementwise, elementwise_with, function, inputs};
use crate::operators::common::functions;
use crate::require;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::{comparison, unary};
use dml_compute::{Scalar, movement};

/// `Equal` and `NotEqual`. Shapes that do not broadcast are an error, or differ.
fn equality(name: &'static str, function: &'static Function, of_other_shapes: bool) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let is_error = attributes.bool("incompatible_shape_error")?;
        Ok(move |call: &Call| {
            let fits = crate::operators::common::elementwise::broadcast(name, &call.sizes(0)?, &call.sizes(1)?);
            if is_error || fits.is_ok() {
                return elementwise(call, function);
            }
            let out = call.output(0, &[])?;
            Ok(movement::copy::fill_with(&call.cx(), &out, Scalar::Bool(of_other_shapes))?)
        })
    })
    .of("T", ALL)
}

/// `ApproximateEqual`.
fn approximate_equal(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let tolerance = Scalar::Double(attributes.float("tolerance")?.into());
    Ok(move |call: &Call| {
        let inputs = inputs(call)?;
        require!(
            inputs[0].sizes == inputs[1].sizes,
            "x and y must be of the same shape. x shape: {:?}. y shape: {:?}",
            inputs[0].sizes,
            inputs[1].sizes
        );
        let out = call.output(0, &inputs[0].sizes)?;
        compute(&call.cx(), &functions::APPROXIMATE_EQUAL, &out, &inputs, &[tolerance])
    })
}

/// An operator of bools.
fn logical(name: &'static str, function: &'static Function) -> Operator {
    Operator::plain(name, move |call: &Call| elementwise_with(call, function, &[]))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        equality("Equal", &comparison::EQ, false),
        equality("NotEqual", &comparison::NE, true),
        Operator::new("ApproximateEqual", approximate_equal).of("T", WIDE_FLOATS),
        function("Less", &comparison::LT, REALS),
        function("LessEqual", &comparison::LE, REALS),
        function("Greater", &comparison::GT, REALS),
        function("GreaterEqual", &comparison::GE, REALS),
        logical("LogicalAnd", &comparison::LOGICAL_AND),
        logical("LogicalOr", &comparison::LOGICAL_OR),
        logical("LogicalNot", &unary::LOGICAL_NOT),
        function("IsNan", &unary::ISNAN, FLOATS),
        function("IsInf", &unary::ISINF, FLOATS),
        function("IsFinite", &functions::IS_FINITE, FLOATS),
    ]
}
