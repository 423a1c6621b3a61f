//! Activations of straight pieces: hard sigmoid and swish, shrinkage, PReLU, and their gradients.

use dml_kernel::Value;

/// `min(max(x + 3, 0), 6) / 6`; NaN passes.
pub fn ramp(x: Value<'_>) -> Value<'_> {
    let x = x + 3.0;
    let low = x.lt(0).select(x.like(0.0), x);
    low.gt(6).select(x.like(6.0), low) / 6.0
}
