//! Activation functions and their gradients.

use dml_kernel::math::comparison::less;
use dml_kernel::{Value, math};

/// `x` where it is not negative. NaN passes: it is not below zero.
pub fn relu_body(x: Value<'_>) -> Value<'_> {
    less(x, x.like(0.0)).select(x.like(0.0), x)
}

pub const SQRT_2_OVER_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;

/// `0.5 * (1 + erf(x / sqrt 2))`, the normal distribution function.
pub fn normal_cdf(x: Value<'_>) -> Value<'_> {
    0.5 * (1.0 + math::erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

/// `x` times the normal distribution function of it.
pub fn gelu_body(x: Value<'_>) -> Value<'_> {
    x * normal_cdf(x)
}
