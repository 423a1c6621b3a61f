//! Fake quantisation whose scale and zero point are learnt: both are floats, and have gradients.
//!
//! Source: S. Esser et al., "Learned step size quantization", ICLR 2020.

use crate::quantization::fake_quantize::{as_integer, clamped, reciprocal};
use dml_kernel::Value;

/// Of an element: number, its gradient, scale, zero point, bounds and the factor of the gradients
/// of scale and zero point.
pub fn gradient<'b>(v: &[Value<'b>], of_channel: bool) -> [Value<'b>; 3] {
    let (x, grad, scale, min, max, factor) = (v[0], v[1], v[2], v[4], v[5], v[6]);
    let zero = if of_channel { clamped(v[3].round(), min, max) } else { clamped(v[3] + 0.5, min, max).trunc() };
    let inverse = reciprocal(scale);
    let level = as_integer((zero + x * inverse).round());
    let (below, above) = (level.lt(min), level.gt(max));
    let outside = below | above;
    let rounded = (clamped(level, min, max) - zero) * scale;
    let end = below.select(grad * (min - zero), grad * (max - zero));
    let of_scale = outside.select(end, grad * (rounded - x) * inverse) * factor;
    let of_zero = outside.select(-grad * scale * factor, 0.0);
    [grad * outside.select(x.like(0.0), 1.0), of_scale, of_zero]
}
