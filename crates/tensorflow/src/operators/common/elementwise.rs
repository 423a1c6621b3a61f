//! What operators have in common that are elementwise functions of their inputs.

use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use dml_compute::complex::pointwise::{self as complex, Given, parts_of_number};
use dml_compute::pointwise::function::{Function, Variant};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::{Context, Dims, Scalar, View};
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

/// All inputs on the device.
pub fn inputs(call: &Call) -> Result<Vec<View>> {
    (0..call.inputs()).map(|i| call.input(i)).collect()
}

/// Result 0, in the memory of an input of its shape and dtype if possible.
pub fn output_like(call: &Call, inputs: &[View], sizes: &[i64]) -> Result<View> {
    let candidates: Vec<i32> =
        (0..inputs.len() as i32).filter(|&i| inputs[i as usize].sizes.as_slice() == sizes).collect();
    call.output_over(&candidates, 0, sizes)
}

/// Computes a function of tensors, which broadcast to the result, and of numbers that follow them.
/// A function of real numbers stands for that of complex ones where the tensors are complex.
pub fn compute(
    cx: &Context,
    function: impl Into<Variant>,
    out: &View,
    inputs: &[View],
    numbers: &[Scalar],
) -> Result<()> {
    let variant = function.into();
    let common = inputs[0].dtype;
    if !common.is_complex() {
        let numbers = numbers.iter().map(|&number| Input::Number(number, common));
        let operands: Vec<Input> = inputs.iter().cloned().map(Input::Tensor).chain(numbers).collect();
        return Ok(kernel::run(cx, variant, &[out], &operands, common)?);
    }
    let function = match variant.function.complex {
        Some(complex) => complex,
        None if variant.function.is_complex() => variant.function,
        None => return Err(Error::Unimplemented(format!("{} of complex numbers", variant.function.name))),
    };
    let tensors = inputs.iter().map(|t| Given::Complex(dml_compute::complex::parts(t)));
    let numbers = numbers.iter().map(|&number| {
        let (re, im) = parts_of_number(number);
        Given::Number(re, im)
    });
    let given: Vec<Given> = tensors.chain(numbers).collect();
    Ok(complex::run(cx, function, out, (common.real(), out.dtype), &given)?)
}

/// Computes a function of all inputs, whose shapes broadcast, and of numbers into result 0.
pub fn elementwise_with(call: &Call, function: impl Into<Variant>, numbers: &[Scalar]) -> Result<()> {
    let inputs = inputs(call)?;
    let mut sizes = Dims::new();
    for input in &inputs {
        sizes = broadcast(call.operator(), &sizes, &input.sizes)?;
    }
    let out = output_like(call, &inputs, &sizes)?;
    compute(&call.cx(), function, &out, &inputs, numbers)
}

/// Computes a function of all inputs, whose shapes broadcast, into result 0.
pub fn elementwise(call: &Call, function: &'static Function) -> Result<()> {
    elementwise_with(call, function, &[])
}

/// An operator that is an elementwise function of its inputs.
pub fn function(name: &'static str, function: &'static Function, dtypes: &'static [DType]) -> Operator {
    Operator::plain(name, move |call: &Call| elementwise(call, function)).of("T", dtypes)
}
