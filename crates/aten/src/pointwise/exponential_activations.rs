//! Activations made of exponentials and logarithms: softplus, ELU, Mish, and their gradients.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::activation::check_slope;
use crate::pointwise::operator::float_operator;
use dml_compute::pointwise::exponential_activations::gate;
use dml_compute::scalar::Scalar as Number;
use dml_kernel::math;
use dml_kernel::math::comparison::{less, less_equal};

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
    float_operator(call, out, "softplus", &[x], &[beta, threshold], |_, v| {
        let scaled = math::mul(v[0], v[1]);
        less(v[2], scaled).select(v[0], math::log1p(math::exp(scaled)) / v[1])
    })
}

fn softplus_backward(
    call: &mut Call,
    grad: AnyTensor,
    x: AnyTensor,
    beta: Number,
    threshold: Number,
    out: Out,
) -> Result<()> {
    float_operator(call, out, "softplus_backward", &[grad, x], &[beta, threshold], |_, v| {
        let scaled = math::mul(v[1], v[2]);
        less(v[3], scaled).select(v[0], v[0] * math::sigmoid(scaled))
    })
}

fn elu(call: &mut Call, x: AnyTensor, alpha: Number, scale: Number, input_scale: Number, out: Out) -> Result<()> {
    float_operator(call, out, "elu", &[x], &[alpha, scale, input_scale], |_, v| {
        let (x, alpha, scale, input_scale) = (v[0], v[1], v[2], v[3]);
        less(x, x.like(0.0)).select(math::expm1(x * input_scale) * (alpha * scale), x * scale)
    })
}

#[allow(clippy::too_many_arguments)]
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
    let family = if of_result { "elu_backward_result" } else { "elu_backward" };
    float_operator(call, out, family, &[grad, x], &[alpha, scale, input_scale], |_, v| {
        let (grad, x, alpha, scale, input_scale) = (v[0], v[1], v[2], v[3], v[4]);
        let low = alpha * scale;
        let slope = if of_result { x + low } else { low * math::exp(x * input_scale) };
        less_equal(x, x.like(0.0)).select(grad * input_scale * slope, grad * scale)
    })
}

/// `x tanh(log(1 + e^x))`
fn mish(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, "mish", &[x], &[], |_, v| v[0] * gate(v[0]))
}

/// The gradient is of the input's dtype.
fn mish_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor) -> Result<()> {
    let empty = call.empty(x.dtype, &[0])?;
    let out = if grad.dtype == x.dtype { Out::New } else { Out::Into(&empty) };
    float_operator(call, out, "mish_backward", &[grad, x], &[], |_, v| {
        let t = gate(v[1]);
        v[0] * (t + v[1] * math::sigmoid(v[1]) * (1.0 - t * t))
    })
}
