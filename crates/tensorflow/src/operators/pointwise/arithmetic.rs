//! Arithmetic of one, two and many tensors.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{
    FIELDS, FIELDS_AND_I64, FLOATS, FLOATS_AND_SIGNED, NUMBERS, REALS, SIGNED, SIGNED_FIELDS,
};
use crate::operators::common::elementwise::{function, inputs, output_like};
use crate::operators::common::functions;
use crate::require;
use dml_compute::View;
use dml_compute::complex::as_real;
use dml_compute::pointwise::expr::{Expr, Node, Source};
use dml_compute::pointwise::kernel::{self, Operand};
use dml_compute::pointwise::{arithmetic, comparison, unary};
use smallvec::smallvec;

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
