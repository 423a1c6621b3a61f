//! Conversions between floats and the integers of quantised tensors, with a single scale and zero
//! point, or with one for each channel. PyTorch stores both with the tensor
//! (`plugin/quantized/tensors.cpp`); here tensors are the integers alone.
//!
//! As on the CPU, numbers are multiplied by the scale's reciprocal, in float32. NaN becomes the
//! largest integer of 8 bits or the least of 32; with a scale for each channel it becomes 0.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::pointwise::operator::{Argument, operator_of};
use crate::{check, operators};
use dml_compute::movement::copy::{cast, read_numbers};
use dml_compute::pointwise::arithmetic::SUB;
use dml_compute::pointwise::kernel::Input;
use dml_compute::quantization::fake_quantize::of_axis;
use dml_compute::quantization::quantize::{self, Kind, common};
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    quantize(self, scale, zero_point, out).complex(Complex::Own).float8(float8::own) {
        "torch_dml::quantize.out(Tensor self, float scale, int zero_point, *, Tensor(a!) out) -> Tensor(a!)",
    }
    quantize_channels(self, scale, zero_point, axis, out).complex(Complex::Own).float8(float8::own) {
        "torch_dml::quantize.channels_out(Tensor self, Tensor scale, Tensor zero_point, int axis, *, Tensor(a!) out) -> Tensor(a!)",
    }
    dequantize(self, scale, zero_point, out) {
        "torch_dml::dequantize.out(Tensor self, float scale, int zero_point, *, Tensor(a!) out) -> Tensor(a!)",
    }
    dequantize_channels(self, scale, zero_point, axis, out) {
        "torch_dml::dequantize.channels_out(Tensor self, Tensor scale, Tensor zero_point, int axis, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Scales and zero points for each index along `axis` of `t`. Quantisers have zero points of int64,
/// which an int32 holds.
fn of_channels(call: &Call, t: &View, [scale, zero]: [&View; 2], axis: i64) -> Result<[Input; 2]> {
    let axis = call.wrap_dim(axis, t.dim())?;
    let zero = if zero.dtype == DType::I64 { &cast(call, zero, DType::I32)? } else { zero };
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
    check_zero_points(call, zero, out.tensor()?.dtype)?;
    let inputs = of_channels(call, x, [scale, zero], axis)?;
    levels(call, x, inputs, out.tensor()?, if zero.dtype.is_float() { Kind::Floats } else { Kind::Channels })
}

/// Checks that zero points that are integers are levels of a dtype.
fn check_zero_points(call: &Call, zero: &View, levels: DType) -> Result<()> {
    if zero.dtype.is_float() {
        return Ok(());
    }
    let (low, high) = match levels {
        DType::U8 => (0, i64::from(u8::MAX)),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let points: Vec<i64> = read_numbers::<Vec<_>>(call, zero)?.into_iter().map(Scalar::to_i64).collect();
    if let (Some(least), Some(largest)) = (points.iter().min(), points.iter().max()) {
        let name = "quantize_tensor_per_channel_affine zero_point";
        check!(*largest <= high, Runtime, "{name} {largest} is above upper bound.");
        check!(*least >= low, Runtime, "{name} {least} is below lower bound.");
    }
    Ok(())
}

/// Writes the integers.
fn levels(call: &mut Call, x: &View, parameters: [Input; 2], out: &View, kind: Kind) -> Result<()> {
    check!(x.dtype == DType::F32, Runtime, "Quantized copy only works with kFloat as source Tensor");
    check!(x.sizes == out.sizes, Runtime, "Quantized copy only works with Tensors with the same shape");
    check_integers(call, out)?;
    quantize::quantize(call, x, parameters, kind, out)?;
    call.ret(out.clone());
    Ok(())
}

fn dequantize(call: &mut Call, q: &View, scale: f64, zero: i64, out: Out) -> Result<()> {
    if q.dtype != DType::I32 || zero == 0 {
        return numbers(call, q, common(scale, zero), DType::F32, out.tensor()?);
    }
    // Differences of int32 are more than float32 holds.
    let operands = [Argument::Tensor(AnyTensor(q)), Argument::Number(Scalar::Int(zero))];
    let levels = call.result_of(|call| operator_of(call, Out::New, &SUB, &operands))?;
    numbers(call, &levels, common(scale, 0), DType::F32, out.tensor()?)
}

fn dequantize_channels(call: &mut Call, q: &View, scale: &View, zero: &View, axis: i64, out: Out) -> Result<()> {
    let inputs = of_channels(call, q, [scale, zero], axis)?;
    numbers(call, q, inputs, scale.dtype, out.tensor()?)
}

/// Writes the numbers that integers stand for: products in a dtype, rounded to float32.
fn numbers(call: &mut Call, q: &View, parameters: [Input; 2], common: DType, out: &View) -> Result<()> {
    check_integers(call, q)?;
    check!(
        out.dtype == DType::F32 && out.sizes == q.sizes,
        Runtime,
        "{}: {} is no place for {}",
        call.name,
        out.describe(),
        q.describe()
    );
    quantize::dequantize(call, q, parameters, common, out)?;
    call.ret(out.clone());
    Ok(())
}

/// Checks that a tensor has the integer dtype of a quantised one.
fn check_integers(call: &Call, t: &View) -> Result<()> {
    match t.dtype {
        DType::I8 | DType::U8 | DType::I32 => Ok(()),
        other => Err(Error::Runtime(format!("{}: no quantised tensor has integers of {other}", call.name))),
    }
}
