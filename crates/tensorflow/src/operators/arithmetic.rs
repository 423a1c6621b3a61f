//! Arithmetic of one, two and many tensors, and what elementwise operators have in common.

use super::dtypes::{FIELDS, FIELDS_AND_I64, FLOATS, FLOATS_AND_SIGNED, NUMBERS, REALS, SIGNED, SIGNED_FIELDS};
use super::functions;
use super::{Call, Operator};
use crate::error::{Error, Result};
use crate::require;
use dml_compute::complex::as_real;
use dml_compute::complex::pointwise::{self as complex, Given, parts_of_number};
use dml_compute::pointwise::expr::{Expr, Node, Source};
use dml_compute::pointwise::function::{Function, Variant};
use dml_compute::pointwise::kernel::{self, Input, Operand};
use dml_compute::pointwise::{arithmetic, comparison, unary};
use dml_compute::{Context, Dims, Scalar, View};
use dml_kernel::DType;
use smallvec::smallvec;

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

/// Tensors that one kernel of `AddN` adds.
const TERMS: usize = 7;

/// The sum of `count` operands, from left to right.
fn sum_of(count: usize) -> Option<Expr> {
    let first = Source::Operand(0);
    let nodes = (1..count).map(|i| {
        let left = if i == 1 { first } else { Source::Node(i as u8 - 2) };
        Node { variant: (&arithmetic::ADD).into(), arguments: smallvec![left, Source::Operand(i as u8)] }
    });
    Expr::new(count as u8, nodes.collect())
}

/// `AddN`.
fn add_n(call: &Call) -> Result<()> {
    let inputs = inputs(call)?;
    let sizes = inputs[0].sizes.clone();
    for (i, input) in inputs.iter().enumerate() {
        require!(
            input.sizes == sizes,
            "Inputs to operation AddN must have the same size and shape. Input 0: {:?} != input {i}: {:?}",
            sizes,
            input.sizes
        );
    }
    if inputs.len() == 1 {
        return call.pass_on(0, 0, &sizes);
    }
    let cx = call.cx();
    let out = output_like(call, &inputs, &sizes)?;
    // The real and the imaginary parts are sums of their own.
    let real = |t: &View| if t.dtype.is_complex() { as_real(t) } else { t.clone() };
    let (result, mut left): (View, Vec<View>) = (real(&out), inputs.iter().map(real).collect());
    // Sums of 16-bit floats that one kernel cannot add are kept in float32.
    let wide = if out.dtype.is_float() { dml_compute::dtype::accumulator(out.dtype) } else { result.dtype };
    while left.len() > 1 {
        let rest = left.split_off(left.len().min(TERMS));
        let sum = if rest.is_empty() { result.clone() } else { cx.empty(wide, &result.sizes)? };
        let operands = left.iter().map(Operand::Tensor).collect::<Vec<_>>();
        let Some(expr) = sum_of(left.len()) else { break };
        kernel::run_expr(&cx, expr, &[&sum], &operands, wide)?;
        left = std::iter::once(sum).chain(rest).collect();
    }
    Ok(())
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        function("Add", &arithmetic::ADD, NUMBERS),
        function("AddV2", &arithmetic::ADD, NUMBERS),
        function("Sub", &arithmetic::SUB, NUMBERS),
        function("Mul", &arithmetic::MUL, NUMBERS),
        function("Maximum", &comparison::MAXIMUM, REALS),
        function("Minimum", &comparison::MINIMUM, REALS),
        function("Neg", &unary::NEG, SIGNED_FIELDS),
        function("Abs", &unary::ABS, SIGNED),
        function("Sign", &unary::SGN, SIGNED_FIELDS),
        function("Square", &functions::SQUARE, NUMBERS),
        function("SquaredDifference", &functions::SQUARED_DIFFERENCE, FIELDS_AND_I64),
        function("Reciprocal", &functions::RECIPROCAL, FIELDS_AND_I64),
        function("Inv", &functions::RECIPROCAL, FIELDS_AND_I64),
        function("Floor", &unary::FLOOR, FLOATS),
        function("Ceil", &unary::CEIL, FLOATS),
        function("Rint", &unary::ROUND, FLOATS),
        function("Round", &unary::ROUND, FLOATS_AND_SIGNED),
        function("Sqrt", &unary::SQRT, FIELDS),
        function("Rsqrt", &unary::RSQRT, FIELDS),
        Operator::plain("AddN", add_n).of("T", NUMBERS),
    ]
}
