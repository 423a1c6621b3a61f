//! Elementwise functions of quantisation.

use crate::functions;
use crate::pointwise::function::Options;
use crate::quantization::fake_quantize::{ZeroPoint, clamped, quantized, reciprocal};
use crate::quantization::learnable::gradient;
use dml_kernel::{DType, ScalarType, Value};

/// The range of a quantised tensor's dtype: int8, uint8 or int32.
fn range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::U8 => (0, i64::from(u8::MAX)),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    }
}

fn rounded<'b>(x: Value<'b>, scale: Value<'b>, zero: Value<'b>) -> Value<'b> {
    zero + (x * reciprocal(scale)).round()
}

/// A rounded number as an integer, clamped to the dtype's range.
fn integer<'b>(level: Value<'b>, options: &Options, of_nan: i64) -> Value<'b> {
    let (low, high) = range(options.dtype);
    let b = level.builder();
    let integer = |level: i64| b.int(ScalarType::I32, level as u64);
    // The largest int32 is not a float32 number.
    let inside = clamped(level, level.like(low as f64), level.like(high as f64)).cast(ScalarType::I32);
    let bounded = level.ge(high as f64).select(integer(high), inside);
    level.is_nan().select(integer(of_nan), bounded)
}

functions! {
    /// Rounds and clamps a zero point that is a float.
    ROUND_ZERO_POINT = "round_zero_point"(zero, low, high) => clamped(zero.round(), low, high);
    /// The rounded number and the mask, from a number, scale, zero point, the bounds, and whether
    /// fake quantisation is enabled. The flags are as for a [`ZeroPoint`].
    FAKE_QUANTIZE = "fake_quantize"(..v | o) => quantized(ZeroPoint::of(o.flags[0], o.flags[1]), v);
    /// The gradients of a number, scale and zero point. Flag 0: scale and zero point are per
    /// channel.
    FAKE_QUANTIZE_BACKWARD = "fake_quantize_backward"(..v | o) => gradient(v, o.flags[0]);
    /// The sum of a product times both scales, plus the bias if there is one.
    SCALE_PRODUCT = "scale_product"(..v) => {
        let scaled = v[0] * (v[1] * v[2]);
        v.get(3).map_or(scaled, |&bias| scaled + bias)
    };
    /// Quantises a float to the option's dtype.
    QUANTIZE = "quantize"(x, scale, zero | o) => {
        let (low, high) = range(o.dtype);
        integer(rounded(x, scale, zero), o, if o.dtype == DType::I32 { low } else { high })
    };
    /// Quantises a float to the option's dtype, with its channel's scale and zero point. Flag 0:
    /// zero points are floats, which are added before numbers are rounded.
    QUANTIZE_CHANNELS = "quantize_channels"(x, scale, zero | o) => {
        let level = if o.flags[0] {
            let inverse = scale.eq(0.0).select(scale.like(1.0), reciprocal(scale));
            (x * inverse + zero).round()
        } else {
            rounded(x, scale, zero)
        };
        integer(level, o, if o.dtype == DType::I32 { range(o.dtype).0 } else { 0 })
    };
    /// Dequantises an integer. As on the CPU, differences of int32 are rounded to float32.
    DEQUANTIZE = "dequantize"(x, scale, zero).integers() => {
        let difference = (x - zero).cast(ScalarType::F32);
        difference.cast(scale.scalar()) * scale
    };
}
