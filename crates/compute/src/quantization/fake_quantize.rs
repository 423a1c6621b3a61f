//! Fake quantisation: floats rounded to those that integers from `quant_min` to `quant_max` stand
//! for, given the distance of neighbours (scale) and the integer that stands for 0 (zero point),
//! and a mask of those that were inside.
//!
//! As on the CPU numbers are multiplied by the scale's reciprocal, in float32 unless they are
//! float64.

use crate::view::{Dims, View};
use dml_kernel::{ScalarType, Value, math};

/// What a zero point is, and with it the order of rounding.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ZeroPoint {
    /// An integer for all elements: added to rounded quotients; infinities are clamped.
    Common,
    /// A float for all elements, which is rounded and clamped first.
    Learnt,
    /// An integer a channel: infinities count as the least integer, as they do where the CPU
    /// converts them.
    OfChannel,
    /// A float a channel: added before quotients are rounded.
    FloatOfChannel,
}

impl ZeroPoint {
    /// By the two flags of the function.
    pub fn of(of_channel: bool, float: bool) -> Self {
        match (of_channel, float) {
            (false, false) => ZeroPoint::Common,
            (false, true) => ZeroPoint::Learnt,
            (true, false) => ZeroPoint::OfChannel,
            (true, true) => ZeroPoint::FloatOfChannel,
        }
    }

    /// The flags that [`of`](Self::of) takes.
    pub fn flags(self) -> [bool; 2] {
        let of_channel = matches!(self, ZeroPoint::OfChannel | ZeroPoint::FloatOfChannel);
        [of_channel, matches!(self, ZeroPoint::Learnt | ZeroPoint::FloatOfChannel)]
    }
}

/// The rounded number and the mask, of a number, scale, zero point, the bounds, and whether
/// anything is done.
pub fn quantized<'b>(kind: ZeroPoint, v: &[Value<'b>]) -> [Value<'b>; 2] {
    let (x, scale, min, max) = (v[0], v[1], v[3], v[4]);
    let zero = match kind {
        ZeroPoint::Common => v[2].trunc(),
        ZeroPoint::Learnt => clamped(v[2].round(), min, max),
        ZeroPoint::OfChannel | ZeroPoint::FloatOfChannel => v[2],
    };
    let scaled = x * reciprocal(scale);
    let level = if kind == ZeroPoint::FloatOfChannel { (zero + scaled).round() } else { zero + scaled.round() };
    let whole = !matches!(kind, ZeroPoint::Common | ZeroPoint::Learnt);
    let level = if whole { as_integer(level) } else { level };
    let distance = clamped(level, min, max) - zero;
    // The CPU's product is one of float32 where there is one scale, even of float64.
    let product = if whole {
        distance * scale
    } else {
        (distance.cast(ScalarType::F32) * scale.cast(ScalarType::F32)).cast(x.scalar())
    };
    let inside = level.ge(min) & level.le(max);
    match v.get(5) {
        None => [product, inside],
        Some(enabled) => [enabled.eq(0).select(x, product), inside | enabled.eq(0)],
    }
}

/// NaN becomes the lower bound.
pub fn clamped<'b>(x: Value<'b>, min: Value<'b>, max: Value<'b>) -> Value<'b> {
    let x = x.ge(min).select(x, min);
    x.le(max).select(x, max)
}

/// `1 / scale`, of float32.
pub fn reciprocal(scale: Value<'_>) -> Value<'_> {
    math::reciprocal(scale.cast(ScalarType::F32)).cast(scale.scalar())
}

/// A whole number as it is after a conversion to int64: what that does not hold is its least.
pub fn as_integer(x: Value<'_>) -> Value<'_> {
    let bound = 2f64.powi(63);
    (x.ge(-bound) & x.lt(bound)).select(x, x.like(-bound))
}

/// Numbers a channel, along dimension `axis` of `x`.
pub fn of_axis(row: &View, x: &View, axis: usize) -> View {
    let mut strides = Dims::from_elem(0, x.dim());
    strides[axis] = row.strides[0];
    row.as_strided(&x.sizes, &strides, 0)
}
