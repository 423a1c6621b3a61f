//! Activations composed of exponentials and logarithms: softplus, ELU, Mish, and their gradients.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::activation::check_slope;
use crate::pointwise::operator::float_operator;
use dml_compute::pointwise::exponential_activations as functions;
use dml_compute::scalar::Scalar as Number;

operators! {
    softplus(self, beta, threshold, out) {
        "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
        "aten::softplus.out(Tensor self, Scalar beta=1, Scalar threshold=20, *, Tensor(a!) out) -> Tensor(a!)",
    }
    softplus_backward(grad_output, self, beta, threshold, out) {
        "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
        "aten::softplus_backward.grad_input(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    elu(self, alpha, scale, input_scale, out) {
        "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
        "aten::elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
        "aten::elu.out(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result, out) {
        "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
        "aten::elu_backward.grad_input(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    mish(self, out) {
        "aten::mish(Tensor self) -> Tensor",
        "aten::mish_(Tensor(a!) self) -> Tensor(a!)",
        "aten::mish.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    mish_backward(grad_output, self) {
        "aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    }
}

/// `log(1 + e^(beta x)) / beta`, the identity above the threshold
fn softplus(call: &mut Call, x: AnyTensor, beta: Number, threshold: Number, out: Out) -> Result<()> {
    float_operator(call, out, &functions::SOFTPLUS, &[x], &[beta, threshold])
}

fn softplus_backward(
    call: &mut Call,
    grad: AnyTensor,
    x: AnyTensor,
    beta: Number,
    threshold: Number,
    out: Out,
) -> Result<()> {
    float_operator(call, out, &functions::SOFTPLUS_BACKWARD, &[grad, x], &[beta, threshold])
}

fn elu(call: &mut Call, x: AnyTensor, alpha: Number, scale: Number, input_scale: Number, out: Out) -> Result<()> {
    float_operator(call, out, &functions::ELU, &[x], &[alpha, scale, input_scale])
}

fn elu_backward(
    call: &mut Call,
    grad: AnyTensor,
    alpha: Number,
    scale: Number,
    input_scale: Number,
    of_result: bool,
    x: AnyTensor,
    out: Out,
) -> Result<()> {
    check_slope("elu", of_result, alpha)?;
    let function = if of_result { &functions::ELU_BACKWARD_RESULT } else { &functions::ELU_BACKWARD };
    float_operator(call, out, function, &[grad, x], &[alpha, scale, input_scale])
}

/// `x tanh(log(1 + e^x))`
fn mish(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::MISH, &[x], &[])
}

/// The gradient has the input's dtype.
fn mish_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor) -> Result<()> {
    let empty = call.empty(x.dtype, &[0])?;
    let out = if grad.dtype == x.dtype { Out::New } else { Out::Into(&empty) };
    float_operator(call, out, &functions::MISH_BACKWARD, &[grad, x], &[])
}
