//! Fake quantisation with learnt scale and zero point: both are floats and have gradients.
//!
//! Source: S. Esser et al., "Learned step size quantization", ICLR 2020.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{input, result_tensor};
use crate::quantization::fake_quantize::{
    ZERO_POINT_OUTSIDE, check_bounds, check_channels, like, of_channels, quantize,
};
use crate::{check, group, operators};
use dml_compute::movement::copy::{cast, contiguous};
use dml_compute::pointwise::kernel::Input;
use dml_compute::quantization::fake_quantize::{Quantizer, ZeroPoint, of_axis};
use dml_compute::quantization::learnable::{Learnt, round_zero_points};
use dml_compute::reduction::sum::{sum_new, total};
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    per_tensor(self, scale, zero_point, quant_min, quant_max) {
        "aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
    }
    per_tensor_backward(grad, self, scale, zero_point, {Gradient}) {
        "aten::_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
    }
    per_channel(self, scale, zero_point, axis, quant_min, quant_max) {
        "aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
    }
    per_channel_backward(grad, self, scale, zero_point, axis, {Gradient}) {
        "aten::_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
    }
}

/// A tensor's first element as an input for all elements of another.
fn first(call: &Call, t: &View) -> Result<Input> {
    check!(t.dim() > 0, Index, "select() cannot be applied to a 0-dim tensor.");
    check!(
        t.sizes[0] > 0,
        Index,
        "select(): index 0 out of range for tensor of size {:?} at dimension 0",
        t.sizes.as_slice()
    );
    check!(
        t.numel() == t.sizes[0],
        Runtime,
        "a Tensor with {} elements cannot be converted to Scalar",
        t.numel() / t.sizes[0]
    );
    input(call, &t.as_strided(&[], &[], 0))
}

fn per_tensor(
    call: &mut Call,
    x: &View,
    AnyTensor(scale): AnyTensor,
    AnyTensor(zero): AnyTensor,
    min: i64,
    max: i64,
) -> Result<()> {
    let (scale, zero) = (first(call, scale)?, first(call, zero)?);
    check_bounds(min, max)?;
    let y = like(call, x, x.dtype)?;
    let quantizer = Quantizer { scale, zero, kind: ZeroPoint::Learnt, enabled: None, bounds: [min, max] };
    quantize(call, quantizer, x, &y, None)?;
    call.ret(y);
    Ok(())
}

/// Zero points are rounded and clamped first.
fn per_channel(call: &mut Call, x: &View, scale: &View, zero: &View, axis: i64, min: i64, max: i64) -> Result<()> {
    let integers = call.empty(DType::I32, &zero.sizes)?;
    round_zero_points(call, zero, [min, max], &integers)?;
    let axis = check_channels(call, x, scale, &integers, axis)?;
    check_bounds(min, max)?;
    let y = like(call, x, x.dtype)?;
    quantize(call, of_channels(x, scale, &integers, axis, [min, max]), x, &y, None)?;
    call.ret(y);
    Ok(())
}

group! {
    /// The numbers of a gradient.
    struct Gradient {
        quant_min: i64,
        quant_max: i64,
        grad_factor: f64,
    }
}

/// The gradients of the numbers, and at every element those of scale and zero point.
fn gradients(
    call: &Call,
    grad: &View,
    x: &View,
    [scale, zero]: [Input; 2],
    numbers: &Gradient,
    of_channel: bool,
) -> Result<[View; 3]> {
    let inputs = [x, grad].map(|t| Input::Tensor(t.clone()));
    let empty = || result_tensor(call, Out::New, DType::F32, &inputs);
    let outs = [empty()?, empty()?, empty()?];
    let bounds = [numbers.quant_min, numbers.quant_max];
    let learnt = Learnt { scale, zero, bounds, factor: numbers.grad_factor, of_channel };
    learnt.gradients(call, grad, x, outs.each_ref())?;
    Ok(outs)
}

fn check_all_float(tensors: [&View; 4]) -> Result<()> {
    let float = tensors.iter().all(|t| t.dtype == DType::F32);
    check!(float, Runtime, "fake quantisation with learnt parameters expects float32 tensors");
    Ok(())
}

fn per_tensor_backward(
    call: &mut Call,
    grad: &View,
    x: &View,
    scale: &View,
    zero: &View,
    numbers: Gradient,
) -> Result<()> {
    let (min, max) = (numbers.quant_min, numbers.quant_max);
    let parameters = [first(call, scale)?, first(call, zero)?];
    check_all_float([grad, x, scale, zero])?;
    check!(x.numel() == grad.numel(), Runtime, "`X` and `dY` are not the same size");
    check!(
        min <= 0 && max >= 0,
        Runtime,
        "`quant_min` should be less than or         equal to `quant_max`, and the quantization range should include 0."
    );
    if x.numel() == 0 {
        return ret_copies(call, [x, scale, zero]);
    }
    let [of_x, of_scale, of_zero] = gradients(call, grad, x, parameters, &numbers, false)?;
    call.ret(of_x);
    for of_all in [of_scale, of_zero] {
        let sum = call.empty(DType::F32, &[1])?;
        total(call, &of_all, &sum.as_strided(&[], &[], 0))?;
        call.ret(sum);
    }
    Ok(())
}

fn per_channel_backward(
    call: &mut Call,
    grad: &View,
    x: &View,
    scale: &View,
    zero: &View,
    axis: i64,
    numbers: Gradient,
) -> Result<()> {
    let (min, max) = (numbers.quant_min, numbers.quant_max);
    let widen = x.dtype == DType::BF16;
    let wide = |t: &View| if widen { cast(call, t, DType::F32) } else { Ok(t.clone()) };
    let (grad, x, scale, zero) = (&wide(grad)?, &wide(x)?, &wide(scale)?, &wide(zero)?);
    check_all_float([grad, x, scale, zero])?;
    check!(x.sizes == grad.sizes, Runtime, "`X` and `dY` are not the same size");
    check!(min <= 0 && max >= 0, Runtime, "Expecting `quant_min` <= 0 and `quant_max` >= 0");
    check!(min <= max, Runtime, "{ZERO_POINT_OUTSIDE}");
    let axis = check_channels(call, x, scale, zero, axis)?;
    if x.numel() == 0 {
        return ret_copies(call, [x, scale, zero]);
    }
    let parameters = [scale, zero].map(|row| Input::Tensor(of_axis(row, x, axis)));
    let [of_x, of_scale, of_zero] = gradients(call, grad, x, parameters, &numbers, true)?;
    call.ret(of_x);
    let others: Dims = (0..x.dim() as i64).filter(|&d| d != axis as i64).collect();
    for of_all in [of_scale, of_zero] {
        let sum = sum_new(call, &of_all, crate::reduction::axes::axes_listed(call, &others, x.dim(), false)?)?;
        call.ret(sum);
    }
    Ok(())
}

fn ret_copies(call: &mut Call, tensors: [&View; 3]) -> Result<()> {
    for t in tensors {
        let copy = contiguous(call, t)?;
        call.ret(copy);
    }
    Ok(())
}
