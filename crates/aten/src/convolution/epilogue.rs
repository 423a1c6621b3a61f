//! Convolutions with what a compiled graph computes of each element of the result.

use crate::convolution::overrideable::forward;
use crate::operator::argument::Tensors;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::expression;
use crate::operators;
use dml_compute::convolution::geometry::Arguments;
use dml_compute::view::View;

operators! {
    // `then` is the text of an expression of the convolution and of the tensors, which are
    // broadcast to the result. Sums are not rounded before the expression.
    convolution_then(input, weight, bias, {Arguments}, tensors, then) {
        "torch_dml::convolution_then(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups, Tensor[] tensors, str then) -> Tensor",
    }
}

fn convolution_then(
    call: &mut Call,
    input: &View,
    weight: &View,
    bias: Option<&View>,
    arguments: Arguments,
    tensors: Tensors,
    then: Option<&str>,
) -> Result<()> {
    let expr = expression::of_floats(call, then, input.dtype, &tensors)?;
    let out = forward(call, input, weight, bias, &arguments, Some((expr, &tensors)))?;
    call.ret(out);
    Ok(())
}
