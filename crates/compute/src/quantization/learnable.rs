//! Fake quantisation with learnt scale and zero point: both are floats and have gradients.
//!
//! Source: S. Esser et al., "Learned step size quantization", ICLR 2020.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::quantization::fake_quantize::{as_integer, clamped, reciprocal};
use crate::quantization::functions::{FAKE_QUANTIZE_BACKWARD, ROUND_ZERO_POINT};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{DType, Value};

/// Zero points that are floats, rounded and clamped to the bounds, into int32.
pub fn round_zero_points(cx: &Context, zero: &View, bounds: [i64; 2], out: &View) -> Result<()> {
    let [low, high] = numbers(bounds);
    kernel::run(cx, &ROUND_ZERO_POINT, &[out], &[Input::Tensor(zero.clone()), low, high], DType::F32)
}

/// What numbers were quantised with, all float32.
pub struct Learnt {
    /// The distance of neighbours.
    pub scale: Input,
    /// What stands for 0.
    pub zero: Input,
    /// The least and the largest integer.
    pub bounds: [i64; 2],
    /// The factor of the gradients of scale and zero point.
    pub factor: f64,
    /// There is a scale and a zero point a channel.
    pub of_channel: bool,
}

impl Learnt {
    /// Writes the gradients of the numbers `x`, and those of scale and zero point at every element,
    /// which are to be added up; `grad` is that of the result. All are of one shape.
    pub fn gradients(self, cx: &Context, grad: &View, x: &View, outs: [&View; 3]) -> Result<()> {
        let Learnt { scale, zero, bounds, factor, of_channel } = self;
        let [min, max] = numbers(bounds);
        let factor = Input::Number(Number::Double(factor), DType::F32);
        let inputs = [Input::Tensor(x.clone()), Input::Tensor(grad.clone()), scale, zero, min, max, factor];
        kernel::run(cx, FAKE_QUANTIZE_BACKWARD.with([of_channel]), &outs, &inputs, DType::F32)
    }
}

fn numbers(bounds: [i64; 2]) -> [Input; 2] {
    bounds.map(|bound| Input::Number(Number::Int(bound), DType::F32))
}

/// The gradients of an element, the scale and the zero point. Operands: number, its gradient,
/// scale, zero point, bounds, and the factor of the gradients of scale and zero point.
pub(super) fn gradient<'b>(v: &[Value<'b>], of_channel: bool) -> [Value<'b>; 3] {
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
