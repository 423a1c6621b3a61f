//! Fake quantisation: floats are rounded to those that integers from `quant_min` to `quant_max`
//! represent, given a scale and a zero point (the integer that represents 0); and a mask of the
//! floats that were in range.
//!
//! As on the CPU, numbers are multiplied by the scale's reciprocal, in float32 unless they are
//! float64.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::quantization::functions::FAKE_QUANTIZE;
use crate::scalar::Scalar as Number;
use crate::view::{Dims, View};
use dml_kernel::{ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Scale, zero point and, where the device knows it alone, whether anything is done.
pub struct Quantizer {
    /// The distance of neighbours.
    pub scale: Input,
    /// What stands for 0.
    pub zero: Input,
    /// How it is used.
    pub kind: ZeroPoint,
    /// Nothing is done where it is 0.
    pub enabled: Option<Input>,
    /// The least and the largest integer.
    pub bounds: [i64; 2],
}

impl Quantizer {
    /// Writes the rounded numbers of `x`, and the mask if there is a place for it. All are of one
    /// shape, to which scale, zero point and switch broadcast.
    pub fn run(self, cx: &Context, x: &View, y: &View, mask: Option<&View>) -> Result<()> {
        let Quantizer { scale, zero, kind, enabled, bounds } = self;
        let common = accumulator(x.dtype);
        let [min, max] = bounds.map(|bound| Input::Number(Number::Int(bound), common));
        let mut inputs: SmallVec<[Input; 6]> = smallvec![Input::Tensor(x.clone()), scale, zero, min, max];
        inputs.extend(enabled);
        let outs: SmallVec<[&View; 2]> = std::iter::once(y).chain(mask).collect();
        kernel::run(cx, FAKE_QUANTIZE.with(kind.flags()), &outs, &inputs, common)
    }
}

/// The kind of zero point, which determines the order of rounding.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ZeroPoint {
    /// An integer for all elements: added to rounded quotients; infinities are clamped.
    Common,
    /// A float for all elements, which is rounded and clamped first.
    Learnt,
    /// An integer for each channel. Infinities become the least integer, as in the CPU's
    /// conversion.
    OfChannel,
    /// A float for each channel: added before quotients are rounded.
    FloatOfChannel,
}

impl ZeroPoint {
    /// The kind with these two flags of the function.
    pub(super) fn of(of_channel: bool, float: bool) -> Self {
        match (of_channel, float) {
            (false, false) => ZeroPoint::Common,
            (false, true) => ZeroPoint::Learnt,
            (true, false) => ZeroPoint::OfChannel,
            (true, true) => ZeroPoint::FloatOfChannel,
        }
    }

    /// The flags that [`of`](Self::of) takes.
    fn flags(self) -> [bool; 2] {
        let of_channel = matches!(self, ZeroPoint::OfChannel | ZeroPoint::FloatOfChannel);
        [of_channel, matches!(self, ZeroPoint::Learnt | ZeroPoint::FloatOfChannel)]
    }
}

/// The rounded number and the mask, from a number, scale, zero point, the bounds, and whether fake
/// quantisation is enabled.
pub(super) fn quantized<'b>(kind: ZeroPoint, v: &[Value<'b>]) -> [Value<'b>; 2] {
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
    // With a single scale the CPU's product is float32, even for float64.
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

/// Clamps to the bounds; NaN becomes the lower bound.
pub(super) fn clamped<'b>(x: Value<'b>, min: Value<'b>, max: Value<'b>) -> Value<'b> {
    let x = x.ge(min).select(x, min);
    x.le(max).select(x, max)
}

/// `1 / scale`, in float32.
pub(super) fn reciprocal(scale: Value<'_>) -> Value<'_> {
    math::reciprocal(scale.cast(ScalarType::F32)).cast(scale.scalar())
}

/// An integral float after a conversion to int64 and back: numbers out of range become the least
/// int64.
pub(super) fn as_integer(x: Value<'_>) -> Value<'_> {
    let bound = 2f64.powi(63);
    (x.ge(-bound) & x.lt(bound)).select(x, x.like(-bound))
}

/// A vector of numbers for each channel, as a view that broadcasts along dimension `axis` of `x`.
pub fn of_axis(row: &View, x: &View, axis: usize) -> View {
    let mut strides = Dims::from_elem(0, x.dim());
    strides[axis] = row.strides[0];
    row.as_strided(&x.sizes, &strides, 0)
}
