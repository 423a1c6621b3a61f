//! Fused multiply forms of three tensors, and interpolation: what optimizers are made of.

use crate::functions;
use crate::pointwise::arithmetic::{exact_product, multiply_add};
use crate::pointwise::complex;
use dml_kernel::Value;

functions! {
    /// `t + value * x * y`
    ADDCMUL = "addcmul"(t, x, y, value).of_complex(&complex::ADDCMUL) => multiply_add(exact_product(value, x), y, t);
    /// `t + value * x / y`
    ADDCDIV = "addcdiv"(t, x, y, value).of_complex(&complex::ADDCDIV) => t + exact_product(value, x) / y;
    /// Interpolation from `start` to `end` by `weight`. The difference of two numbers, and a
    /// multiple of it, may be beyond the range where the result is not: then a quarter of
    /// everything is computed.
    LERP = "lerp"(start, end, weight).of_complex(&complex::LERP) => {
        let near = interpolate(start, end, weight);
        let overflows = !near.is_finite() & !start.is_inf() & !end.is_inf() & !weight.is_inf();
        overflows.select(4.0 * interpolate(start * 0.25, end * 0.25, weight), near)
    };
}

/// Interpolation from the nearer end, as the CPU's.
pub fn interpolate<'b>(start: Value<'b>, end: Value<'b>, weight: Value<'b>) -> Value<'b> {
    let near = weight.abs().lt(0.5);
    multiply_add(end - start, near.select(weight, weight - 1.0), near.select(start, end))
}
