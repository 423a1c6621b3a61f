//! Fake quantisation: floats are rounded to those that integers from `quant_min` to `quant_max`
//! represent, given a scale and a zero point (the integer that represents 0); and a mask of the
//! floats that were in range.
//!
//! As on the CPU, numbers are multiplied by the scale's reciprocal, in float32 unless they are
//! float64.

use crate::operator::argument::AnyTensor;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{input, result_tensor};
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::read_numbers;
use dml_compute::pointwise::kernel::Input;
use dml_compute::quantization::fake_quantize::{Quantizer, ZeroPoint, of_axis};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

/// The error message for a zero point out of range.
pub const ZERO_POINT_OUTSIDE: &str = "`zero_point` must be between `quant_min` and `quant_max`.";

operators! {
    per_tensor(self, scale, zero_point, quant_min, quant_max) {
        "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    }
    per_tensor_on_device(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max) {
        "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    }
    per_channel(self, scale, zero_point, axis, quant_min, quant_max) {
        "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    }
}

/// Runs a quantiser: writes the rounded numbers, and the mask if there is a place for it.
pub fn quantize(call: &Call, quantizer: Quantizer, x: &View, y: &View, mask: Option<&View>) -> Result<()> {
    let name = if matches!(quantizer.kind, ZeroPoint::Common | ZeroPoint::Learnt) {
        "fake_quantize_tensor_cachemask_kernel_type_handling"
    } else {
        "fake_quantize_channel_cachemask_cpu_type_handling"
    };
    check!(x.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", x.dtype);
    Ok(quantizer.run(call, x, y, mask)?)
}

/// Checks the bounds of integers.
pub fn check_bounds(min: i64, max: i64) -> Result<()> {
    check!(min <= max, Runtime, "`quant_min` should be less than or         equal to `quant_max`.");
    Ok(())
}

/// Allocates a tensor with the input's sizes and strides, and a dtype.
pub fn like(call: &Call, x: &View, dtype: DType) -> Result<View> {
    result_tensor(call, crate::operator::argument::Out::New, dtype, &[Input::Tensor(x.clone())])
}

/// A tensor's only element as an input for all elements of another.
pub fn single(call: &Call, t: &View, what: &str) -> Result<Input> {
    let count = t.numel();
    check!(count == 1, Runtime, "{}: {what} should have one element, not {count}", call.name);
    input(call, &t.as_strided(&[], &[], 0))
}

/// Runs the fake quantisation with new result tensors, which the call returns.
pub fn with_mask(call: &mut Call, x: &View, quantizer: Quantizer) -> Result<()> {
    let (y, mask) = (like(call, x, x.dtype)?, like(call, x, DType::Bool)?);
    quantize(call, quantizer, x, &y, Some(&mask))?;
    call.ret(y);
    call.ret(mask);
    Ok(())
}

fn per_tensor(call: &mut Call, x: &View, scale: f64, zero: i64, min: i64, max: i64) -> Result<()> {
    check_bounds(min, max)?;
    check!((min..=max).contains(&zero), Runtime, "{ZERO_POINT_OUTSIDE}");
    let common = accumulator(x.dtype);
    let scale = Input::Number(Number::Double(f64::from(scale as f32)), common);
    let zero = Input::Number(Number::Int(zero), common);
    with_mask(call, x, Quantizer { scale, zero, kind: ZeroPoint::Common, enabled: None, bounds: [min, max] })
}

/// Scale, zero point and the enable flag are tensors of one element, which are not read back.
fn per_tensor_on_device(
    call: &mut Call,
    x: &View,
    AnyTensor(scale): AnyTensor,
    AnyTensor(zero): AnyTensor,
    AnyTensor(enabled): AnyTensor,
    min: i64,
    max: i64,
) -> Result<()> {
    check_bounds(min, max)?;
    let (scale, zero) = (single(call, scale, "scale")?, single(call, zero, "zero_point")?);
    let enabled = Some(single(call, enabled, "fake_quant_enabled")?);
    with_mask(call, x, Quantizer { scale, zero, kind: ZeroPoint::Common, enabled, bounds: [min, max] })
}

/// Reads back integer zero points, which have to be within the bounds.
fn per_channel(call: &mut Call, x: &View, scale: &View, zero: &View, axis: i64, min: i64, max: i64) -> Result<()> {
    let axis = check_channels(call, x, scale, zero, axis)?;
    check_bounds(min, max)?;
    if !zero.dtype.is_float() {
        check!(
            zero.numel() > 0,
            Runtime,
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        );
        let zeros: Vec<Number> = read_numbers(call, zero)?;
        check!(zeros.iter().all(|zero| (min..=max).contains(&zero.to_i64())), Runtime, "{ZERO_POINT_OUTSIDE}");
    }
    let quantizer = of_channels(x, scale, zero, axis, [min, max]);
    with_mask(call, x, quantizer)
}

/// With a scale and a zero point for each channel.
pub fn of_channels(x: &View, scale: &View, zero: &View, axis: usize, bounds: [i64; 2]) -> Quantizer {
    let kind = if zero.dtype.is_float() { ZeroPoint::FloatOfChannel } else { ZeroPoint::OfChannel };
    let [scale, zero] = [scale, zero].map(|row| Input::Tensor(of_axis(row, x, axis)));
    Quantizer { scale, zero, kind, enabled: None, bounds }
}

/// Checks scales and zero points of the channels along `axis`; returns the dimension.
pub fn check_channels(call: &Call, x: &View, scale: &View, zero: &View, axis: i64) -> Result<usize> {
    let (of_scale, of_zero) = (scale.dtype, zero.dtype);
    check!(matches!(of_scale, DType::F32 | DType::BF16), Runtime, "Scale must be Float or BFloat16, found {of_scale}");
    check!(
        matches!(of_zero, DType::I32 | DType::F32 | DType::F16),
        Runtime,
        "Zero-point must be Int32, Float or Half, found {of_zero}"
    );
    check!(scale.dim() == 1, Runtime, "scale should be a 1-D tensor");
    check!(zero.dim() == 1, Runtime, "zero point should be a 1-D tensor");
    check!(scale.numel() == zero.numel(), Runtime, "scale and zero-point need to have the same dimensions");
    check!(
        scale.numel() == call.size_of(x, call.wrap_dim(axis, x.dim())?)?,
        Runtime,
        "dimensions of scale and zero-point are not consistent with input tensor"
    );
    check!(axis >= 0, Runtime, "`axis` must be between 0 and number of dimensions of input");
    call.wrap_dim(axis, x.dim())
}
