//! Activations made of exponentials and logarithms: softplus, ELU, Mish, and their gradients.

use crate::functions;
use dml_kernel::math::comparison::{less, less_equal};
use dml_kernel::{Value, math};

/// `tanh(log(1 + e^x))`
fn gate(x: Value<'_>) -> Value<'_> {
    math::tanh(math::log1p(math::exp(x)))
}

functions! {
    /// `log(1 + e^(beta x)) / beta`, the identity above the threshold.
    SOFTPLUS = "softplus"(x, beta, threshold) => {
        let scaled = math::mul(x, beta);
        less(threshold, scaled).select(x, math::log1p(math::exp(scaled)) / beta)
    };
    /// The gradient of [`SOFTPLUS`].
    SOFTPLUS_BACKWARD = "softplus_backward"(grad, x, beta, threshold) => {
        let scaled = math::mul(x, beta);
        less(threshold, scaled).select(grad, grad * math::sigmoid(scaled))
    };
    /// `x * scale` from 0 on, else `alpha * scale * (e^(input_scale x) - 1)`.
    ELU = "elu"(x, alpha, scale, input_scale) => {
        less(x, x.like(0.0)).select(math::expm1(x * input_scale) * (alpha * scale), x * scale)
    };
    /// The gradient of [`ELU`], of its input.
    ELU_BACKWARD = "elu_backward"(grad, x, alpha, scale, input_scale) => {
        let low = alpha * scale;
        let slope = low * math::exp(x * input_scale);
        less_equal(x, x.like(0.0)).select(grad * input_scale * slope, grad * scale)
    };
    /// The gradient of [`ELU`], of its result.
    ELU_BACKWARD_RESULT = "elu_backward_result"(grad, y, alpha, scale, input_scale) => {
        let low = alpha * scale;
        let slope = y + low;
        less_equal(y, y.like(0.0)).select(grad * input_scale * slope, grad * scale)
    };
    /// `x tanh(log(1 + e^x))`
    MISH = "mish"(x) => x * gate(x);
    /// The gradient of [`MISH`].
    MISH_BACKWARD = "mish_backward"(grad, x) => {
        let t = gate(x);
        grad * (t + x * math::sigmoid(x) * (1.0 - t * t))
    };
}
