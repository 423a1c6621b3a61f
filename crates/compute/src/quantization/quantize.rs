//! The integers of quantised tensors from floats, and back: with one scale and zero point, or one
//! of each a channel. PyTorch keeps both with the tensor (`plugin/quantized.cpp`); here tensors are
//! those integers.
//!
//! As on the CPU numbers are multiplied by the scale's reciprocal, in float32, and NaN becomes the
//! largest integer of 8 bits or the least of 32, with a scale a channel 0.

use crate::pointwise::kernel::Input;
use crate::scalar::Scalar as Number;
use dml_kernel::DType;

/// One scale and zero point as inputs: floats of 32 bits, as the CPU's kernels take them.
pub fn common(scale: f64, zero: i64) -> [Input; 2] {
    let numbers = [Number::Double(f64::from(scale as f32)), Number::Int(zero)];
    numbers.map(|number| Input::Number(number, DType::F32))
}

/// Scales and zero points.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One of each.
    One,
    /// One of each a channel.
    Channels,
    /// The same, and zero points are floats, which are added before numbers are rounded.
    Floats,
}
