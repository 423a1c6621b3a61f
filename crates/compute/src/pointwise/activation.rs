//! Activation functions and their gradients.

use crate::functions;
use crate::pointwise::complex;
use crate::pointwise::rule::Rule;
use dml_kernel::math::comparison::{less, less_equal, maximum, minimum};
use dml_kernel::{Value, math};

const SQRT_2_OVER_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;

/// `0.5 * (1 + erf(x / sqrt 2))`, the normal distribution function.
fn normal_cdf(x: Value<'_>) -> Value<'_> {
    0.5 * (1.0 + math::erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

functions! {
    /// `x` where it is not negative. NaN passes: it is not below zero.
    RELU = "relu"(x).rule(Rule::Exact) => less(x, x.like(0.0)).select(x.like(0.0), x);
    /// `x` above the threshold, else `value`.
    THRESHOLD = "threshold"(x, threshold, value) => less_equal(x, threshold).select(value, x);
    /// `grad` where `x` is above the threshold, else 0; also the gradient of relu.
    THRESHOLD_BACKWARD = "threshold_backward"(x, grad, threshold) => {
        less_equal(x, threshold).select(grad.like(0.0), grad)
    };
    /// The gradient of the sigmoid, of its result.
    SIGMOID_BACKWARD = "sigmoid_backward"(grad, y).of_complex(&complex::SIGMOID_BACKWARD) => grad * (1.0 - y) * y;
    /// The gradient of the hyperbolic tangent, of its result. `1 - y²` as a product keeps its
    /// digits near 1.
    TANH_BACKWARD = "tanh_backward"(grad, y).of_complex(&complex::TANH_BACKWARD) => grad * ((1.0 - y) * (1.0 + y));
    /// `x` above 0, else `x * slope`.
    LEAKY_RELU = "leaky_relu"(x, slope) => less(x.like(0.0), x).select(x, x * slope);
    /// Of the input or of the result: their signs agree where the slope is not negative.
    LEAKY_RELU_BACKWARD = "leaky_relu_backward"(x, grad, slope) => {
        less(x.like(0.0), x).select(grad, grad * slope)
    };
    /// `x / (1 + e^-x)`
    SILU = "silu"(x).of_complex(&complex::SILU) => x / (1.0 + math::exp(-x));
    /// The gradient of [`SILU`].
    SILU_BACKWARD = "silu_backward"(grad, x) => {
        let s = math::sigmoid(x);
        grad * s * (1.0 + x * (1.0 - s))
    };
    /// `x` times the normal distribution function of it.
    GELU = "gelu"(x) => x * normal_cdf(x);
    /// [`GELU`] with the normal distribution approximated by a hyperbolic tangent.
    GELU_TANH = "gelu_tanh"(x) => {
        0.5 * x * (1.0 + math::tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))
    };
    /// The gradient of [`GELU`].
    GELU_BACKWARD = "gelu_backward"(grad, x) => {
        let density = SQRT_2_OVER_PI * 0.5 * math::exp(-0.5 * x * x);
        grad * (normal_cdf(x) + x * density)
    };
    /// The gradient of [`GELU_TANH`].
    GELU_TANH_BACKWARD = "gelu_tanh_backward"(grad, x) => {
        let t = math::tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
        let slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);
        grad * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
    };
    /// `min(max(x, low), high)`, as clamp.
    HARDTANH = "hardtanh"(x, low, high).rule(Rule::Exact) => minimum(maximum(x, low), high);
    /// `grad` between the limits, else 0.
    HARDTANH_BACKWARD = "hardtanh_backward"(grad, x, low, high) => {
        (less_equal(x, low) | less_equal(high, x)).select(grad.like(0.0), grad)
    };
    /// `log(1 / (1 + e^-x))`
    LOG_SIGMOID = "log_sigmoid"(x) => {
        x.gt(0.0).select(x.like(0.0), x) - math::log1p(math::exp(-x.abs()))
    };
    /// The gradient of [`LOG_SIGMOID`].
    LOG_SIGMOID_BACKWARD = "log_sigmoid_backward"(grad, x) => {
        let z = math::exp(-x.abs());
        let share = z / (z + 1.0);
        grad * x.lt(0.0).select(1.0 - share, share)
    };
}
