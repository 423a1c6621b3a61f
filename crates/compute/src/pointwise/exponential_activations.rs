//! Activations made of exponentials and logarithms: softplus, ELU, Mish, and their gradients.

use dml_kernel::{Value, math};

pub fn gate(x: Value<'_>) -> Value<'_> {
    math::tanh(math::log1p(math::exp(x)))
}
