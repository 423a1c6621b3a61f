//! Activation functions and their gradients.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::{check_all_fit, check_fits};
use crate::operator::error::Result;
use crate::pointwise::operator::{check_not_bool, common_dtype, float_operator, operator, resized, strided};
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::activation as functions;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_compute::view::layout::{preserved_strides, result_strides};
use dml_kernel::DType;

operators! {
    relu(self, out) {
        hot "aten::relu(Tensor self) -> Tensor",
        hot "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
        "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    threshold(self, threshold, value, out) {
        "aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
        "aten::threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
        "aten::threshold.out(Tensor self, Scalar threshold, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
    }
    threshold_backward(grad_output, self, threshold, out) {
        hot "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
        "aten::threshold_backward.grad_input(Tensor grad_output, Tensor self, Scalar threshold, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    sigmoid_backward(grad_output, output, out)
        .complex(Complex::of(&functions::SIGMOID_BACKWARD))
    {
        hot "aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
        "aten::sigmoid_backward.grad_input(Tensor grad_output, Tensor output, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    tanh_backward(grad_output, output, out)
        .complex(Complex::of(&functions::TANH_BACKWARD))
    {
        hot "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
        "aten::tanh_backward.grad_input(Tensor grad_output, Tensor output, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    leaky_relu(self, negative_slope, out) {
        "aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
        "aten::leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
        "aten::leaky_relu.out(Tensor self, Scalar negative_slope=0.01, *, Tensor(a!) out) -> Tensor(a!)",
    }
    leaky_relu_backward(grad_output, self, negative_slope, self_is_result, out) {
        "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
        "aten::leaky_relu_backward.grad_input(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    silu(self, out).complex(Complex::of(&functions::SILU)) {
        hot "aten::silu(Tensor self) -> Tensor",
        "aten::silu_(Tensor(a!) self) -> Tensor(a!)",
        "aten::silu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    silu_backward(grad_output, self, out) {
        "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor",
        "aten::silu_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    gelu(self, approximate, out) {
        hot "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
        "aten::gelu_(Tensor(a!) self, *, str approximate=\"none\") -> Tensor(a!)",
        "aten::gelu.out(Tensor self, *, str approximate=\"none\", Tensor(a!) out) -> Tensor(a!)",
    }
    gelu_backward(grad_output, self, approximate, out) {
        hot "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
        "aten::gelu_backward.grad_input(Tensor grad_output, Tensor self, *, str approximate=\"none\", Tensor(a!) grad_input) -> Tensor(a!)",
    }
    hardtanh(self, min_val, max_val, out) {
        "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
        "aten::hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)",
        "aten::hardtanh.out(Tensor self, Scalar min_val=-1, Scalar max_val=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    hardtanh_backward(grad_output, self, min_val, max_val, out) {
        "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
        "aten::hardtanh_backward.grad_input(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

fn relu(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    check!(x.dtype != DType::Bool, Dtype, "Boolean inputs not supported for relu");
    let mut result = None;
    let out = resized(call, out, &mut result, (&x.sizes, &View::contiguous_strides(&x.sizes)))?;
    operator(call, out, &functions::RELU, &[x], &[])
}

/// In place also on an expanded tensor: applying it twice has the same result.
fn threshold(call: &mut Call, x: AnyTensor, threshold: Number, value: Number, out: Out) -> Result<()> {
    check_not_bool(&x, "threshold")?;
    check_threshold(threshold, x.dtype)?;
    check_fits(value, x.dtype)?;
    if let Out::InPlace(t) = out
        && dml_compute::view::overlap::is_expanded(t)
    {
        let unexpanded = dml_compute::view::overlap::unexpanded(t);
        threshold_operator(call, AnyTensor(&unexpanded), threshold, value, Out::InPlace(&unexpanded))?;
        call.returns.clear();
        call.ret(t.clone());
        return Ok(());
    }
    let mut result = None;
    let out = resized(call, out, &mut result, (&x.sizes, &preserved_strides(&x)))?;
    threshold_operator(call, x, threshold, value, out)
}

fn threshold_operator(call: &mut Call, x: AnyTensor, threshold: Number, value: Number, out: Out) -> Result<()> {
    operator(call, out, &functions::THRESHOLD, &[x], &[threshold, value])
}

/// The CPU compares halves as float32.
fn check_threshold(threshold: Number, dtype: DType) -> Result<()> {
    check_fits(threshold, if dtype.is_float() { accumulator(dtype) } else { dtype })
}

/// Also the gradient of relu. It has the input's strides.
fn threshold_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, threshold: Number, out: Out) -> Result<()> {
    check_not_bool(&grad, "threshold_backward")?;
    check_threshold(threshold, common_dtype(call, &[x, grad]))?;
    let sizes = call.broadcast(&x.sizes, &grad.sizes)?;
    let strides = result_strides(&sizes, &[&x.expand(&sizes), &grad.expand(&sizes)]);
    let mut result = None;
    let out = resized(call, out, &mut result, (&sizes, &strides))?;
    operator(call, out, &functions::THRESHOLD_BACKWARD, &[x, grad], &[threshold])
}

fn sigmoid_backward(call: &mut Call, grad: AnyTensor, output: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::SIGMOID_BACKWARD, &[grad, output], &[])
}

/// `1 - y²` as a product is accurate near 1.
fn tanh_backward(call: &mut Call, grad: AnyTensor, output: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::TANH_BACKWARD, &[grad, output], &[])
}

fn leaky_relu(call: &mut Call, x: AnyTensor, slope: Number, out: Out) -> Result<()> {
    float_operator(call, out, &functions::LEAKY_RELU, &[x], &[slope])
}

/// With respect to the input, given the input or the result: their signs agree if the slope is not
/// negative. The gradient has their strides.
fn leaky_relu_backward(
    call: &mut Call,
    grad: AnyTensor,
    x: AnyTensor,
    slope: Number,
    of_result: bool,
    out: Out,
) -> Result<()> {
    check_slope("leakyReLu", of_result, slope)?;
    float_operator(call, out, &functions::LEAKY_RELU_BACKWARD, &[x, grad], &[slope])
}

/// Checks the slope below zero of an activation whose gradient is computed from its result: with a
/// negative slope the result does not determine the input's sign. NaN is an error too.
pub fn check_slope(name: &str, of_result: bool, slope: Number) -> Result<()> {
    check!(
        !of_result || slope.to_f64() >= 0.0,
        Runtime,
        "In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused \
         by calling in-place forward function with a negative slope, please call out-of-place version instead."
    );
    Ok(())
}

fn silu(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::SILU, &[x], &[])
}

fn silu_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, out: Out) -> Result<()> {
    float_operator(call, out, &functions::SILU_BACKWARD, &[grad, x], &[])
}

/// Whether the normal distribution is approximated by a hyperbolic tangent.
fn is_tanh(approximate: Option<&str>) -> Result<bool> {
    let approximate = approximate.unwrap_or("none");
    check!(["none", "tanh"].contains(&approximate), Runtime, "approximate argument must be either none or tanh.");
    Ok(approximate == "tanh")
}

fn gelu(call: &mut Call, x: AnyTensor, approximate: Option<&str>, out: Out) -> Result<()> {
    if is_tanh(approximate)? {
        return float_operator(call, out, &functions::GELU_TANH, &[x], &[]);
    }
    float_operator(call, out, &functions::GELU, &[x], &[])
}

fn gelu_backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, approximate: Option<&str>, out: Out) -> Result<()> {
    if is_tanh(approximate)? {
        return float_operator(call, out, &functions::GELU_TANH_BACKWARD, &[grad, x], &[]);
    }
    float_operator(call, out, &functions::GELU_BACKWARD, &[grad, x], &[])
}

/// As clamp, so that a NaN limit makes all elements NaN; the result has the input's strides.
fn hardtanh(call: &mut Call, x: AnyTensor, low: Number, high: Number, out: Out) -> Result<()> {
    check!(x.dtype != DType::Bool, Dtype, "Bool inputs not supported for hardtanh");
    let float = x.dtype.is_float();
    if !float {
        check_all_fit(&[low, high], DType::I64)?;
    }
    let limit = |x: Number| if float { x } else { Number::Int(x.to_i64()) };
    let (mut low, high) = (limit(low), limit(high));
    if x.dtype == DType::U8 && low.to_f64() < 0.0 {
        // A negative lower limit is no limit for unsigned integers; torch before 2.15 raises an
        // error.
        low = Number::Int(0);
    }
    check_all_fit(&[low, high], x.dtype)?;
    let mut result = None;
    let out = strided(call, out, &mut result, x.dtype, (&x.sizes, &preserved_strides(&x)))?;
    operator(call, out, &functions::HARDTANH, &[x], &[low, high])
}

fn hardtanh_backward(
    call: &mut Call,
    grad: AnyTensor,
    x: AnyTensor,
    low: Number,
    high: Number,
    out: Out,
) -> Result<()> {
    float_operator(call, out, &functions::HARDTANH_BACKWARD, &[grad, x], &[low, high])
}
