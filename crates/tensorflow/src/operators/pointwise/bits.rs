//! Operations on the bits of integers.

use crate::c_api::Attributes;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL_INTEGERS;
use crate::operators::common::elementwise::{elementwise_with, function};
use crate::operators::common::functions;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::{comparison, unary};

/// A function that needs the dtype's width.
fn of_width(name: &'static str, function: &'static Function) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let variant = function.of(attributes.dtype("T")?);
        Ok(move |call: &Call| elementwise_with(call, variant, &[]))
    })
    .of("T", ALL_INTEGERS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("BitwiseAnd", &comparison::BITWISE_AND, ALL_INTEGERS),
        function("BitwiseOr", &comparison::BITWISE_OR, ALL_INTEGERS),
        function("BitwiseXor", &comparison::BITWISE_XOR, ALL_INTEGERS),
        function("Invert", &unary::BITWISE_NOT, ALL_INTEGERS),
        of_width("LeftShift", &functions::LEFT_SHIFT),
        of_width("RightShift", &functions::RIGHT_SHIFT),
        of_width("PopulationCount", &functions::POPULATION_COUNT),
    ]
}
