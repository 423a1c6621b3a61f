//! Conversion between floats and the integers of quantised tensors, with one scale and zero point,
//! or one of each per channel. Tensors have only the integers.
//!
//! Numbers are multiplied by the scale's reciprocal, in float32. NaN becomes the largest integer of
//! 8 bits or the least of 32; with a scale per channel it becomes 0.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::quantization::functions::{DEQUANTIZE, QUANTIZE, QUANTIZE_CHANNELS};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// One scale and zero point as inputs: 32-bit floats, as in the CPU's kernels.
pub fn common(scale: f64, zero: i64) -> [Input; 2] {
    let numbers = [Number::Double(f64::from(scale as f32)), Number::Int(zero)];
    numbers.map(|number| Input::Number(number, DType::F32))
}

/// Scales and zero points.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One scale and zero point.
    One,
    /// One of each per channel.
    Channels,
    /// One of each per channel, with float zero points, which are added before rounding.
    Floats,
}

/// Writes the integers (int8, uint8 or int32) of floats. Scale and zero point broadcast to them.
pub fn quantize(cx: &Context, x: &View, [scale, zero]: [Input; 2], kind: Kind, out: &View) -> Result<()> {
    let inputs = [Input::Tensor(x.clone()), scale, zero];
    let function = if kind == Kind::One { &QUANTIZE } else { &QUANTIZE_CHANNELS };
    let levels = function.with([kind == Kind::Floats]).of(out.dtype);
    kernel::run(cx, levels, &[out], &inputs, DType::F32)
}

/// Writes the float32 values of integers: products in dtype `product`, rounded. Scale and zero
/// point broadcast to them.
pub fn dequantize(cx: &Context, q: &View, [scale, zero]: [Input; 2], product: DType, out: &View) -> Result<()> {
    kernel::run(cx, &DEQUANTIZE, &[out], &[Input::Tensor(q.clone()), scale, zero], product)
}
