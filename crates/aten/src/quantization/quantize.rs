//! The integers of quantised tensors from floats, and back: with one scale and zero point, or one
//! of each a channel. PyTorch keeps both with the tensor (`plugin/quantized.cpp`); here tensors are
//! those integers.
//!
//! As on the CPU numbers are multiplied by the scale's reciprocal, in float32, and NaN becomes the
//! largest integer of 8 bits or the least of 32, with a scale a channel 0.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::quantization::fake_quantize::of_axis;
use dml_compute::quantization::functions::{DEQUANTIZE, QUANTIZE, QUANTIZE_CHANNELS};
use dml_compute::quantization::quantize::{Kind, common};
use dml_compute::view::View;
use dml_kernel::DType;

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
    check_integers(call, out)?;
    let inputs = [Input::Tensor(x.clone()), scale, zero];
    let function = if kind == Kind::One { &QUANTIZE } else { &QUANTIZE_CHANNELS };
    let levels = function.with([kind == Kind::Floats]).of(out.dtype);
    kernel::run(call, levels, &[out], &inputs, DType::F32)?;
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
    check_integers(call, q)?;
    check!(
        out.dtype == DType::F32 && out.sizes == q.sizes,
        Runtime,
        "{}: {} is no place for {}",
        call.name,
        out.describe(),
        q.describe()
    );
    let inputs = [Input::Tensor(q.clone()), scale, zero];
    kernel::run(call, &DEQUANTIZE, &[out], &inputs, common)?;
    call.ret(out.clone());
    Ok(())
}

/// Checks that a tensor has the integers of a quantised one.
fn check_integers(call: &Call, t: &View) -> Result<()> {
    match t.dtype {
        DType::I8 | DType::U8 | DType::I32 => Ok(()),
        other => Err(Error::Runtime(format!("{}: no quantised tensor has integers of {other}", call.name))),
    }
}
