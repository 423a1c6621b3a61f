//! The integers of quantised tensors from floats, and back: with one scale and zero point, or one of each a channel. PyTorch keeps both
//! with the tensor (`plugin/quantized.cpp`); here tensors are those integers.
//!
//! As on the CPU numbers are multiplied by the scale's reciprocal, in float32, and NaN becomes the largest integer of 8 bits or the
//! least of 32, with a scale a channel 0.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::pointwise::kernel::{self, Input, Variant, operands};
use dml_compute::quantization::fake_quantize::{clamped, of_axis, reciprocal};
use dml_compute::quantization::quantize::{Kind, common};
use dml_compute::view::View;
use dml_kernel::{DType, ScalarType};

operators! {
    quantize(self, scale, zero_point, out) {
        "torch_dml::quantize.out(Tensor self, float scale, int zero_point, *, Tensor(a!) out) -> Tensor(a!)",
    }
    quantize_channels(self, scale, zero_point, axis, out) {
        "torch_dml::quantize.channels_out(Tensor self, Tensor scale, Tensor zero_point, int axis, *, Tensor(a!) out) -> Tensor(a!)",
    }
    dequantize(self, scale, zero_point, out) {
        "torch_dml::dequantize.out(Tensor self, float scale, int zero_point, *, Tensor(a!) out) -> Tensor(a!)",
    }
    dequantize_channels(self, scale, zero_point, axis, out) {
        "torch_dml::dequantize.channels_out(Tensor self, Tensor scale, Tensor zero_point, int axis, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// A scale and a zero point for each place along `axis` of `t`.
fn of_channels(call: &Call, t: &View, [scale, zero]: [&View; 2], axis: i64) -> Result<[Input; 2]> {
    let axis = call.wrap_dim(axis, t.dim())?;
    for row in [scale, zero] {
        let fits = row.dim() == 1
            && row.sizes[0] == t.sizes[axis]
            && matches!(row.dtype, DType::F32 | DType::F64 | DType::I32);
        check!(fits, Runtime, "{}: {} does not fit dimension {axis} of {}", call.name, row.describe(), t.describe());
    }
    Ok([scale, zero].map(|row| Input::Tensor(of_axis(row, t, axis))))
}

fn quantize(call: &mut Call, x: &View, scale: f64, zero: i64, out: Out) -> Result<()> {
    levels(call, x, common(scale, zero), out.tensor()?, Kind::One)
}

fn quantize_channels(call: &mut Call, x: &View, scale: &View, zero: &View, axis: i64, out: Out) -> Result<()> {
    let inputs = of_channels(call, x, [scale, zero], axis)?;
    levels(call, x, inputs, out.tensor()?, if zero.dtype.is_float() { Kind::Floats } else { Kind::Channels })
}

/// Writes the integers.
fn levels(call: &mut Call, x: &View, [scale, zero]: [Input; 2], out: &View, kind: Kind) -> Result<()> {
    check!(x.dtype == DType::F32, Runtime, "{}: expected float32, got {}", call.name, x.describe());
    check!(x.sizes == out.sizes, Runtime, "{}: {} is no place for {}", call.name, out.describe(), x.describe());
    let [low, high] = bounds(call, out)?;
    let of_nan = match kind {
        _ if out.dtype == DType::I32 => low,
        Kind::One => high,
        Kind::Channels | Kind::Floats => 0,
    };
    let inputs = [Input::Tensor(x.clone()), scale, zero];
    let family = if kind == Kind::One { "quantize" } else { "quantize_channels" };
    let variant = Variant::Of(out.dtype, kind == Kind::Floats);
    kernel::run_variant(call, family, variant, &[out], &operands(&inputs), DType::F32, &|b, v| {
        let (x, scale, zero) = (v[0], v[1], v[2]);
        let level = if kind == Kind::Floats {
            let inverse = scale.eq(0.0).select(scale.like(1.0), reciprocal(scale));
            (x * inverse + zero).round()
        } else {
            zero + (x * reciprocal(scale)).round()
        };
        let integer = |level: i64| b.int(ScalarType::I32, level as u64);
        // The largest int32 is none of float32's numbers.
        let inside = clamped(level, level.like(low as f64), level.like(high as f64)).cast(ScalarType::I32);
        let bounded = level.ge(high as f64).select(integer(high), inside);
        vec![level.is_nan().select(integer(of_nan), bounded)]
    })?;
    call.ret(out.clone());
    Ok(())
}

fn dequantize(call: &mut Call, q: &View, scale: f64, zero: i64, out: Out) -> Result<()> {
    numbers(call, q, common(scale, zero), DType::F32, out.tensor()?)
}

fn dequantize_channels(call: &mut Call, q: &View, scale: &View, zero: &View, axis: i64, out: Out) -> Result<()> {
    let inputs = of_channels(call, q, [scale, zero], axis)?;
    numbers(call, q, inputs, scale.dtype, out.tensor()?)
}

/// Writes the numbers that integers stand for: products in a dtype, rounded to float32.
fn numbers(call: &mut Call, q: &View, [scale, zero]: [Input; 2], common: DType, out: &View) -> Result<()> {
    bounds(call, q)?;
    check!(
        out.dtype == DType::F32 && out.sizes == q.sizes,
        Runtime,
        "{}: {} is no place for {}",
        call.name,
        out.describe(),
        q.describe()
    );
    let inputs = [Input::Tensor(q.clone()), scale, zero];
    // The CPU rounds differences of int32.
    kernel::run(call, "dequantize", &[out], &inputs, common, |_, v| {
        let difference = (v[0] - v[2]).cast(ScalarType::F32);
        vec![difference.cast(v[1].scalar()) * v[1]]
    })?;
    call.ret(out.clone());
    Ok(())
}

/// The range of a quantised tensor's integers.
fn bounds(call: &Call, t: &View) -> Result<[i64; 2]> {
    match t.dtype {
        DType::I8 => Ok([i64::from(i8::MIN), i64::from(i8::MAX)]),
        DType::U8 => Ok([0, i64::from(u8::MAX)]),
        DType::I32 => Ok([i64::from(i32::MIN), i64::from(i32::MAX)]),
        other => Err(Error::Runtime(format!("{}: no quantised tensor has integers of {other}", call.name))),
    }
}
