//! Activations of straight pieces: hard sigmoid and swish, shrinkage, PReLU, and their gradients.

use crate::functions;
use crate::pointwise::binary::copysign;
use crate::pointwise::unary::negated;
use dml_kernel::Value;
use dml_kernel::math::comparison::{less, less_equal};

/// `min(max(x + 3, 0), 6) / 6`; NaN passes.
fn ramp(x: Value<'_>) -> Value<'_> {
    let x = x + 3.0;
    let low = x.lt(0).select(x.like(0.0), x);
    low.gt(6).select(x.like(6.0), low) / 6.0
}

functions! {
    /// `x min(max(x + 3, 0), 6) / 6`
    HARDSWISH = "hardswish"(x) => x * ramp(x);
    /// The gradient of [`HARDSWISH`].
    HARDSWISH_BACKWARD = "hardswish_backward"(grad, x) => {
        x.le(-3).select(grad.like(0.0), x.lt(3).select(grad * (x / 3.0 + 0.5), grad))
    };
    /// `min(max(x + 3, 0), 6) / 6`
    HARDSIGMOID = "hardsigmoid"(x) => ramp(x);
    /// The gradient of [`HARDSIGMOID`].
    HARDSIGMOID_BACKWARD = "hardsigmoid_backward"(grad, x) => {
        (x.gt(-3) & x.lt(3)).select(grad / 6.0, 0)
    };
    /// `x` moved towards 0 by `lambda`, 0 within.
    SOFTSHRINK = "softshrink"(x, lambda) => {
        // Not by `x * 0`, which keeps NaN but which drivers simplify.
        let inside = x.is_nan().select(x, copysign(x.like(0.0), x));
        less(lambda, x).select(x - lambda, less(x, negated(lambda)).select(x + lambda, inside))
    };
    /// `x` outside of `-lambda` to `lambda`, 0 within.
    HARDSHRINK = "hardshrink"(x, lambda) => {
        (less_equal(negated(lambda), x) & less_equal(x, lambda)).select(x.like(0.0), x)
    };
    /// The gradient of [`SOFTSHRINK`] and of [`HARDSHRINK`].
    SHRINK_BACKWARD = "shrink_backward"(grad, x, lambda) => {
        (less_equal(negated(lambda), x) & less_equal(x, lambda)).select(grad.like(0.0), grad)
    };
    /// `x` above 0, else `weight * x`.
    PRELU = "prelu"(x, weight) => less(x.like(0.0), x).select(x, weight * x);
    /// The gradients of the input and of the weight, the latter not yet summed.
    PRELU_BACKWARD = "prelu_backward"(x, weight, grad) => {
        let positive = less(x.like(0.0), x);
        [positive.select(grad, weight * grad), positive.select(grad.like(0.0), x * grad)]
    };
}
