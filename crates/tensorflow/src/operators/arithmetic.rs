//! Elementwise functions of one and two tensors whose results have their dtype.

use super::dtypes::{FIELDS, FLOATS, NUMBERS, REALS};
use super::{Call, Operator};
use crate::error::{Error, Result};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::{arithmetic, comparison, division, unary};
use dml_compute::{Dims, View};
use dml_kernel::DType;

/// The shape of elementwise results: each size that is not 1, right-aligned.
pub fn broadcast(operator: &str, a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let size = |sizes: &[i64], d: usize| (d + sizes.len()).checked_sub(rank).map_or(1, |d| sizes[d]);
    (0..rank)
        .map(|d| match (size(a, d), size(b, d)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(Error::InvalidArgument(format!("Incompatible shapes: {a:?} vs. {b:?} ({operator})"))),
        })
        .collect()
}

/// Computes a function of all inputs, whose shapes broadcast, into result 0.
pub fn elementwise(call: &Call, function: &'static Function) -> Result<()> {
    let inputs: Vec<View> = (0..call.inputs()).map(|i| call.input(i)).collect::<Result<_>>()?;
    let mut sizes = Dims::new();
    for input in &inputs {
        sizes = broadcast(call.operator(), &sizes, &input.sizes)?;
    }
    let candidates: Vec<i32> = (0..inputs.len() as i32).filter(|&i| inputs[i as usize].sizes == sizes).collect();
    let out = call.output_over(&candidates, 0, &sizes)?;
    let common = inputs[0].dtype;
    let operands: Vec<Input> = inputs.into_iter().map(Input::Tensor).collect();
    Ok(kernel::run(&call.cx(), function, &[&out], &operands, common)?)
}

/// An operator that is an elementwise function of its inputs.
pub fn function(name: &'static str, function: &'static Function, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| elementwise(call, function)).of("T", dtypes)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("Add", &arithmetic::ADD, NUMBERS),
        function("AddV2", &arithmetic::ADD, NUMBERS),
        function("Sub", &arithmetic::SUB, NUMBERS),
        function("Mul", &arithmetic::MUL, NUMBERS),
        function("RealDiv", &division::DIV, FIELDS),
        function("Maximum", &comparison::MAXIMUM, REALS),
        function("Minimum", &comparison::MINIMUM, REALS),
        function("Exp", &unary::EXP, FIELDS),
        function("Rsqrt", &unary::RSQRT, FIELDS),
        function("Sqrt", &unary::SQRT, FIELDS),
        function("Tanh", &unary::TANH, FIELDS),
        function("Erf", &unary::ERF, FLOATS),
    ]
}
