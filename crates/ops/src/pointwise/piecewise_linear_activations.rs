//! Activations of straight pieces: hard sigmoid and swish, shrinkage, PReLU, and their gradients.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{Out, float_operator, result_tensor};
use crate::pointwise::kernel::{Input, run};
use dml_kernel::Value;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(hardswish, "aten::hardswish", "aten::hardswish_", "aten::hardswish.out" @ 1),
    &overloads!(hardsigmoid, "aten::hardsigmoid", "aten::hardsigmoid_", "aten::hardsigmoid.out" @ 1),
    &[
        op("aten::hardswish_backward", |c| hardswish_backward(c, Out::New)),
        op("aten::hardsigmoid_backward", |c| hardsigmoid_backward(c, Out::New)),
        op("aten::hardsigmoid_backward.grad_input", |c| hardsigmoid_backward(c, Out::Arg(2))),
        op("aten::softshrink", |c| softshrink(c, Out::New)),
        op("aten::softshrink.out", |c| softshrink(c, Out::Arg(2))),
        op("aten::softshrink_backward", |c| shrink_backward(c, Out::New)),
        op("aten::softshrink_backward.grad_input", |c| shrink_backward(c, Out::Arg(3))),
        op("aten::hardshrink", |c| hardshrink(c, Out::New)),
        op("aten::hardshrink.out", |c| hardshrink(c, Out::Arg(2))),
        op("aten::hardshrink_backward", |c| shrink_backward(c, Out::New)),
        op("aten::hardshrink_backward.grad_input", |c| shrink_backward(c, Out::Arg(3))),
        op("aten::_prelu_kernel", prelu),
        op("aten::_prelu_kernel_backward", prelu_backward),
    ],
];

/// `min(max(x + 3, 0), 6) / 6`; NaN passes.
fn ramp(x: Value<'_>) -> Value<'_> {
    let x = x + 3.0;
    let low = x.lt(0).select(x.like(0.0), x);
    low.gt(6).select(x.like(6.0), low) / 6.0
}

fn hardswish(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "hardswish", &[0], &[], |_, v| v[0] * ramp(v[0]))
}

/// `hardswish_backward(grad, self)`
fn hardswish_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "hardswish_backward", &[0, 1], &[], |_, v| {
        let (grad, x) = (v[0], v[1]);
        x.le(-3).select(grad.like(0.0), x.lt(3).select(grad * (x / 3.0 + 0.5), grad))
    })
}

fn hardsigmoid(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "hardsigmoid", &[0], &[], |_, v| ramp(v[0]))
}

/// `hardsigmoid_backward(grad, self)`
fn hardsigmoid_backward(call: &mut Call, out: Out) -> Result<()> {
    float_operator(call, out, "hardsigmoid_backward", &[0, 1], &[], |_, v| {
        (v[1].gt(-3) & v[1].lt(3)).select(v[0] / 6.0, 0)
    })
}

/// `softshrink(self, lambd)`
fn softshrink(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?];
    crate::check!(
        numbers[0].to_f64() >= 0.0,
        Runtime,
        "lambda must be greater or equal to 0, but found to be {}.",
        numbers[0].to_f64()
    );
    float_operator(call, out, "softshrink", &[0], &numbers, |_, v| {
        let (x, lambda) = (v[0], v[1]);
        // Not by `x * 0`, which keeps NaN but which drivers simplify.
        let inside = x.is_nan().select(x, 0);
        x.gt(lambda).select(x - lambda, x.lt(-lambda).select(x + lambda, inside))
    })
}

/// `hardshrink(self, lambd)`
fn hardshrink(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(1)?];
    float_operator(call, out, "hardshrink", &[0], &numbers, |_, v| {
        (v[0].ge(-v[1]) & v[0].le(v[1])).select(v[0].like(0.0), v[0])
    })
}

/// `softshrink_backward(grad, self, lambd)` and `hardshrink_backward`, which is the same
fn shrink_backward(call: &mut Call, out: Out) -> Result<()> {
    let numbers = [call.scalar(2)?];
    float_operator(call, out, "shrink_backward", &[0, 1], &numbers, |_, v| {
        (v[1].ge(-v[2]) & v[1].le(v[2])).select(v[0].like(0.0), v[0])
    })
}

/// `_prelu_kernel(self, weight)`: the weight broadcasts
fn prelu(call: &mut Call) -> Result<()> {
    float_operator(call, Out::New, "prelu", &[0, 1], &[], |_, v| v[0].gt(0).select(v[0], v[1] * v[0]))
}

/// `_prelu_kernel_backward(grad, self, weight) -> (grad_self, grad_weight)`, the latter not yet summed
fn prelu_backward(call: &mut Call) -> Result<()> {
    let (grad, x, weight) = (call.tensor(0)?.clone(), call.tensor(1)?.clone(), call.tensor(2)?.clone());
    let dtype = x.dtype;
    let inputs = [Input::Tensor(x), Input::Tensor(weight), Input::Tensor(grad)];
    let of_self = result_tensor(call, Out::New, dtype, &inputs)?;
    let of_weight = result_tensor(call, Out::New, dtype, &inputs)?;
    run(call, "prelu_backward", 0, &[&of_self, &of_weight], &inputs, dtype, |_, v| {
        let (x, weight, grad) = (v[0], v[1], v[2]);
        let positive = x.gt(0);
        vec![positive.select(grad, weight * grad), positive.select(grad.like(0.0), x * grad)]
    })?;
    call.ret(of_self);
    call.ret(of_weight);
    Ok(())
}
