//! Piecewise linear activations: hard sigmoid and swish, shrinkage, PReLU, and their gradients.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::operator::{common_dtype, float_operator, result_tensor, strided};
use crate::{check, operators};
use dml_compute::bounds::Bounds;
use dml_compute::pointwise::kernel::{Input, run};
use dml_compute::pointwise::piecewise_linear_activations as functions;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_compute::view::layout::preserved_strides;

operators! {
    hardswish(self, out) {
        "aten::hardswish(Tensor self) -> Tensor",
        "aten::hardswish_(Tensor(a!) self) -> Tensor(a!)",
        "aten::hardswish.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    hardswish_backward(grad_output, self) {
        "aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    }
    hardsigmoid(self, out) {
        "aten::hardsigmoid(Tensor self) -> Tensor",
        "aten::hardsigmoid_(Tensor(a!) self) -> Tensor(a!)",
        "aten::hardsigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    hardsigmoid_backward(grad_output, self, out) {
        "aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
        "aten::hardsigmoid_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    softshrink(self, lambd, out) {
        "aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
        "aten::softshrink.out(Tensor self, Scalar lambd=0.5, *, Tensor(a!) out) -> Tensor(a!)",
    }
    shrink_backward(grad_output, self, lambd, out) {
        "aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
        "aten::softshrink_backward.grad_input(Tensor grad_output, Tensor self, Scalar lambd, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    hardshrink(self, lambd, out) {
        "aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
        "aten::hardshrink.out(Tensor self, Scalar lambd=0.5, *, Tensor(a!) out) -> Tensor(a!)",
    }
    shrink_backward(grad_out, self, lambd, out) {
        "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
        "aten::hardshrink_backward.grad_input(Tensor grad_out, Tensor self, Scalar lambd, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    prelu(self, weight) {
        "aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    }
    prelu_backward(grad_output, self, weight) {
        "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    }
}

fn hardswish(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::HARDSWISH, &[x], &[])
}

fn hardswish_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor) -> Result<()> {
    float_operator(call, Out::New, &functions::HARDSWISH_BACKWARD, &[grad, x], &[])
}

fn hardsigmoid(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::HARDSIGMOID, &[x], &[])
}

fn hardsigmoid_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::HARDSIGMOID_BACKWARD, &[grad, x], &[])
}

fn softshrink(call: &mut Call, x: AnyTensor, lambda: Number, out: Out) -> Result<()> {
    let (size, dtype) = (lambda.to_f64(), x.dtype);
    if dtype.is_float() {
        let largest = Bounds::of(dtype).of_floats().1;
        check!(
            (0.0..=largest).contains(&size),
            Runtime,
            "lambda must be in range [0, {largest}] for input dtype {dtype}, but found {size}"
        );
    }
    float_operator(call, out, &functions::SOFTSHRINK, &[x], &[lambda])
}

/// Checks that the limit is representable in the tensors' common dtype.
fn check_lambda(call: &Call, tensors: &[AnyTensor], lambda: Number) -> Result<()> {
    let common = common_dtype(call, tensors);
    if common.is_float() { check_fits(lambda, common) } else { Ok(()) }
}

fn hardshrink(call: &mut Call, x: AnyTensor, lambda: Number, out: Out) -> Result<()> {
    check_lambda(call, &[x], lambda)?;
    float_operator(call, out, &functions::HARDSHRINK, &[x], &[lambda])
}

/// The gradient of both shrinkages.
fn shrink_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, lambda: Number, out: Out) -> Result<()> {
    check_lambda(call, &[grad, x], lambda)?;
    float_operator(call, out, &functions::SHRINK_BACKWARD, &[grad, x], &[lambda])
}

/// The weight broadcasts.
fn prelu(call: &mut Call, x: AnyTensor, weight: AnyTensor) -> Result<()> {
    structured::check_inputs([weight.0], x.dtype)?;
    let mut result = None;
    let out = strided(call, Out::New, &mut result, x.dtype, (&x.sizes, &preserved_strides(&x)))?;
    float_operator(call, out, &functions::PRELU, &[x, weight], &[])
}

/// The gradients of the input and of the weight; the latter is not summed yet.
fn prelu_backward(call: &mut Call, grad: &View, x: &View, weight: &View) -> Result<()> {
    let dtype = x.dtype;
    structured::check_inputs([weight, grad], dtype)?;
    let inputs = [x, weight, grad].map(|t| Input::Tensor(t.clone()));
    let of_self = result_tensor(call, Out::New, dtype, &inputs)?;
    let of_weight = result_tensor(call, Out::New, dtype, &inputs)?;
    run(call, &functions::PRELU_BACKWARD, &[&of_self, &of_weight], &inputs, dtype)?;
    call.ret(of_self);
    call.ret(of_weight);
    Ok(())
}
