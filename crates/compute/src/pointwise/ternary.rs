//! Fused multiply forms of three tensors, and interpolation: what optimizers are made of.

use crate::pointwise::arithmetic::{exact_product, multiply_add};
use dml_kernel::Value;

/// `self + value * tensor1 * tensor2` of `[self, tensor1, tensor2, value]`.
pub fn addcmul_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    multiply_add(exact_product(v[3], v[1]), v[2], v[0])
}

/// `self + value * tensor1 / tensor2` of `[self, tensor1, tensor2, value]`.
pub fn addcdiv_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    v[0] + exact_product(v[3], v[1]) / v[2]
}

/// Interpolation from `v[0]` to `v[1]` by `v[2]`. The difference of two numbers, and a multiple of it, may be beyond the
/// range where the result is not: then a quarter of everything is computed.
pub fn lerp_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    let (start, end, weight) = (v[0], v[1], v[2]);
    let near = interpolate(start, end, weight);
    let overflows = !near.is_finite() & !start.is_inf() & !end.is_inf() & !weight.is_inf();
    overflows.select(4.0 * interpolate(start * 0.25, end * 0.25, weight), near)
}

/// Interpolation from the nearer end, as the CPU's.
pub fn interpolate<'b>(start: Value<'b>, end: Value<'b>, weight: Value<'b>) -> Value<'b> {
    let near = weight.abs().lt(0.5);
    multiply_add(end - start, near.select(weight, weight - 1.0), near.select(start, end))
}
