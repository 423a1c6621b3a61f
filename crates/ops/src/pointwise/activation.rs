//! Activation functions and their gradients.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{self, Out, Rule, float_operator, operator};
use dml_kernel::{DType, Value, math};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(relu, "aten::relu", "aten::relu_", "aten::relu.out" @ 1),
    &overloads!(threshold, "aten::threshold", "aten::threshold_", "aten::threshold.out" @ 3),
    &[
        op("aten::threshold_backward", |c| threshold_backward(c, Out::New)),
        op("aten::threshold_backward.grad_input", |c| threshold_backward(c, Out::Arg(3))),
        op("aten::sigmoid_backward", |c| sigmoid_backward(c, Out::New)),
        op("aten::sigmoid_backward.grad_input", |c| sigmoid_backward(c, Out::Arg(2))),
        op("aten::tanh_backward", |c| tanh_backward(c, Out::New)),
        op("aten::tanh_backward.grad_input", |c| tanh_backward(c, Out::Arg(2))),
        op("aten::leaky_relu_backward", |c| leaky_relu_backward(c, Out::New)),
        op("aten::leaky_relu_backward.grad_input", |c| leaky_relu_backward(c, Out::Arg(4))),
        op("aten::silu_backward", |c| silu_backward(c, Out::New)),
        op("aten::silu_backward.grad_input", |c| silu_backward(c, Out::Arg(2))),
        op("aten::gelu_backward", |c| gelu_backward(c, Out::New)),
        op("aten::gelu_backward.grad_input", |c| gelu_backward(c, Out::Arg(3))),
        op("aten::hardtanh_backward", |c| hardtanh_backward(c, Out::New)),
        op("aten::hardtanh_backward.grad_input", |c| hardtanh_backward(c, Out::Arg(4))),
    ],
    &overloads!(leaky_relu, "aten::leaky_relu", "aten::leaky_relu_", "aten::leaky_relu.out" @ 2),
    &overloads!(silu, "aten::silu", "aten::silu_", "aten::silu.out" @ 1),
    &overloads!(gelu, "aten::gelu", "aten::gelu_", "aten::gelu.out" @ 2),
    &overloads!(hardtanh, "aten::hardtanh", "aten::hardtanh_", "aten::hardtanh.out" @ 3),
];

fn relu(call: &mut Call, out: Out) -> Result<()> {
    check!(call.any_tensor(0)?.dtype != DType::Bool, Dtype, "Boolean inputs not supported for relu");
    operator(call, out, Rule::Promote, "relu", &[0], &[], |_, v| relu_body(v[0]))
}

/// `x` where it is not negative. NaN passes: it is not below zero.
pub fn relu_body(x: Value<'_>) -> Value<'_> {
    x.lt(0).select(x.like(0.0), x)
}

/// `threshold(self, threshold, value)`
fn threshold(call: &mut Call, out: Out) -> Result<()> {
    elementwise::check_not_bool(call, 0, "threshold")?;
    let numbers = [call.scalar(1)?, call.scalar(2)?];
    operator(call, out, Rule::Promote, "threshold", &[0], &numbers, |_, v| v[0].le(v[1]).select(v[2], v[0]))
}

/// `threshold_backward(grad, self, threshold)`: also the gradient of relu.
fn threshold_backward(call: &mut Call, out: Out) -> Result<()> {
    elementwise::check_not_bool(call, 0, "threshold_backward")?;
    let numbers = [call.scalar(2)?];
    operator(call, out, Rule::Promote, "threshold_backward", &[0, 1], &numbers, |_, v| {
        v[1].le(v[2]).select(v[0].like(0.0), v[0])
    })
}

/// `sigmoid_backward(grad, output)`
fn sigmoid_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "sigmoid_backward", &[0, 1], &[], |_, v| v[0] * (1.0 - v[1]) * v[1])
}

/// `tanh_backward(grad, output)`
fn tanh_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "tanh_backward", &[0, 1], &[], |_, v| v[0] * (1.0 - v[1] * v[1]))
}

/// `leaky_relu(self, negative_slope)`
fn leaky_relu(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?];
    float_operator(call, out, "leaky_relu", &[0], &numbers, |_, v| v[0].gt(0).select(v[0], v[0] * v[1]))
}

/// `leaky_relu_backward(grad, self, negative_slope, self_is_result)`: the sign of the input and of the result agree.
fn leaky_relu_backward(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(2)?];
    float_operator(call, out, "leaky_relu_backward", &[0, 1], &numbers, |_, v| v[1].gt(0).select(v[0], v[0] * v[2]))
}

fn silu(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "silu", &[0], &[], |_, v| v[0] / (1.0 + math::exp(-v[0])))
}

/// `silu_backward(grad, self)`
fn silu_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "silu_backward", &[0, 1], &[], |_, v| {
        let s = math::sigmoid(v[1]);
        v[0] * s * (1.0 + v[1] * (1.0 - s))
    })
}

const SQRT_2_OVER_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;

/// `0.5 * (1 + erf(x / sqrt 2))`, the normal distribution function.
fn normal_cdf(x: Value<'_>) -> Value<'_> {
    0.5 * (1.0 + math::erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

/// `x` times the normal distribution function of it.
pub fn gelu_body(x: Value<'_>) -> Value<'_> {
    x * normal_cdf(x)
}

/// Whether the `approximate` argument at `i` is "tanh".
fn tanh_approximation(call: &Call, i: usize) -> Result<bool> {
    Ok(call.opt_str(i)? == Some("tanh"))
}

/// `gelu(self, approximate)`
fn gelu(call: &mut Call, out: Out) -> Result<()> {
    let at = if call.name == "aten::gelu.out" { 1 } else { call.args.len() - 1 };
    if tanh_approximation(call, at)? {
        return float_operator(call, out, "gelu_tanh", &[0], &[], |_, v| {
            let x = v[0];
            0.5 * x * (1.0 + math::tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))
        });
    }
    float_operator(call, out, "gelu", &[0], &[], |_, v| gelu_body(v[0]))
}

/// `gelu_backward(grad, self, approximate)`
fn gelu_backward(call: &mut Call, out: Out) -> Result<()> {
    if tanh_approximation(call, 2)? {
        return float_operator(call, out, "gelu_tanh_backward", &[0, 1], &[], |_, v| {
            let x = v[1];
            let t = math::tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
            let slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);
            v[0] * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
        });
    }
    float_operator(call, out, "gelu_backward", &[0, 1], &[], |_, v| {
        let x = v[1];
        let density = SQRT_2_OVER_PI * 0.5 * math::exp(-0.5 * x * x);
        v[0] * (normal_cdf(x) + x * density)
    })
}

/// `hardtanh(self, min_val, max_val)`
fn hardtanh(call: &mut Call, out: Out) -> Result<()> {
    check!(call.any_tensor(0)?.dtype != DType::Bool, Dtype, "Bool inputs not supported for hardtanh");
    let mut numbers: [Number; 2] = [call.scalar(1)?, call.scalar(2)?];
    if call.any_tensor(0)?.dtype == DType::U8 && numbers[0].to_f64() < 0.0 {
        // A lower limit that no unsigned number reaches is none.
        numbers[0] = Number::Int(0);
    }
    operator(call, out, Rule::Promote, "hardtanh", &[0], &numbers, |_, v| {
        let low = v[0].lt(v[1]).select(v[1], v[0]);
        low.gt(v[2]).select(v[2], low)
    })
}

/// `hardtanh_backward(grad, self, min_val, max_val)`
fn hardtanh_backward(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(2)?, call.scalar(3)?];
    float_operator(call, out, "hardtanh_backward", &[0, 1], &numbers, |_, v| {
        (v[1].le(v[2]) | v[1].ge(v[3])).select(v[0].like(0.0), v[0])
    })
}
