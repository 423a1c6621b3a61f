//! Activations made of exponentials and logarithms: softplus, ELU, Mish, and their gradients.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, float_operator};
use dml_kernel::{Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::softplus", |c| softplus(c, Out::New)),
        op("aten::softplus.out", |c| softplus(c, Out::Arg(3))),
        op("aten::softplus_backward", |c| softplus_backward(c, Out::New)),
        op("aten::softplus_backward.grad_input", |c| softplus_backward(c, Out::Arg(4))),
        op("aten::elu_backward", |c| elu_backward(c, Out::New)),
        op("aten::elu_backward.grad_input", |c| elu_backward(c, Out::Arg(6))),
        op("aten::mish_backward", |c| mish_backward(c, Out::New)),
    ],
    &overloads!(elu, "aten::elu", "aten::elu_", "aten::elu.out" @ 4),
    &overloads!(mish, "aten::mish", "aten::mish_", "aten::mish.out" @ 1),
];

/// `softplus(self, beta, threshold)`: `log(1 + e^(beta x)) / beta`, the identity above the threshold
fn softplus(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?, call.scalar(2)?];
    float_operator(call, out, "softplus", &[0], &numbers, |_, v| {
        let scaled = v[0] * v[1];
        scaled.gt(v[2]).select(v[0], math::log1p(math::exp(scaled)) / v[1])
    })
}

/// `softplus_backward(grad, self, beta, threshold)`
fn softplus_backward(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(2)?, call.scalar(3)?];
    float_operator(call, out, "softplus_backward", &[0, 1], &numbers, |_, v| {
        let scaled = v[1] * v[2];
        scaled.gt(v[3]).select(v[0], v[0] * math::sigmoid(scaled))
    })
}

/// `elu(self, alpha, scale, input_scale)`
fn elu(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?, call.scalar(2)?, call.scalar(3)?];
    float_operator(call, out, "elu", &[0], &numbers, |_, v| {
        let (x, alpha, scale, input_scale) = (v[0], v[1], v[2], v[3]);
        x.lt(0).select(math::expm1(x * input_scale) * (alpha * scale), x * scale)
    })
}

/// `elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)`
fn elu_backward(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?, call.scalar(2)?, call.scalar(3)?];
    let (family, of_result) = if call.flag(4)? { ("elu_backward_result", true) } else { ("elu_backward", false) };
    float_operator(call, out, family, &[0, 5], &numbers, |_, v| {
        let (grad, x, alpha, scale, input_scale) = (v[0], v[1], v[2], v[3], v[4]);
        let low = alpha * scale;
        let slope = if of_result { x + low } else { low * math::exp(x * input_scale) };
        x.le(0).select(grad * input_scale * slope, grad * scale)
    })
}

/// `mish(self)`: `x tanh(log(1 + e^x))`
fn mish(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "mish", &[0], &[], |_, v| v[0] * gate(v[0]))
}

fn gate(x: Value<'_>) -> Value<'_> {
    math::tanh(math::log1p(math::exp(x)))
}

/// `mish_backward(grad, self)`
fn mish_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "mish_backward", &[0, 1], &[], |_, v| {
        let t = gate(v[1]);
        v[0] * (t + v[1] * math::sigmoid(v[1]) * (1.0 - t * t))
    })
}
