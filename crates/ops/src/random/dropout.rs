//! Dropout and its gradient.

use crate::movement::copy::{cast, device_copy, fill_with};
use crate::operator::argument::{Generator, Out};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::result_tensor;
use crate::random::fill::bernoulli;
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    native_dropout(input, p, train) {
        "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    }
    masked_scale(grad_output, mask, scale; None) {
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    }
    fused_dropout(self, p, generator) {
        "aten::_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
    }
    masked_scale(self, mask, scale; Some(DType::U8)) {
        "aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
    }
}

/// The result and the mask.
fn native_dropout(call: &mut Call, input: &Tensor, p: f64, train: Option<bool>) -> Result<()> {
    if train.unwrap_or(true) && p != 0.0 {
        check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {p}");
        return dropout(call, input, 1.0 - p, None, DType::Bool);
    }
    let inputs = [Input::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, DType::Bool, &inputs)?;
    device_copy(call, input, &out)?;
    fill_with(call, &mask, Number::Bool(true))?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// The result and the mask; `p` is the probability of staying.
fn fused_dropout(call: &mut Call, input: &Tensor, p: f64, generator: Option<Generator>) -> Result<()> {
    check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {}", 1.0 - p);
    dropout(call, input, p, generator, DType::U8)
}

/// Elements stay with probability `keep`, scaled so that their mean does too.
fn dropout(call: &mut Call, input: &Tensor, keep: f64, generator: Option<Generator>, mask: DType) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"dropout\" not implemented for '{}'", input.dtype);
    let inputs = [Input::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, mask, &inputs)?;
    bernoulli(call, generator.as_ref(), &mask, keep)?;
    apply_mask(call, &out, input, &mask, if keep == 0.0 { 0.0 } else { 1.0 / keep })?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// Also the gradient of dropout. The mask is of `mask_dtype`, if there is one.
fn masked_scale(call: &mut Call, x: &Tensor, mask: &Tensor, scale: f64, mask_dtype: Option<DType>) -> Result<()> {
    check!(mask_dtype.is_none_or(|d| d == mask.dtype), Runtime, "mask should be torch.uint8 dtype");
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask.clone())];
    let out = result_tensor(call, Out::New, x.dtype, &inputs)?;
    apply_mask(call, &out, x, mask, scale)?;
    call.ret(out);
    Ok(())
}

/// `x * mask * scale`
fn apply_mask(call: &Call, out: &Tensor, x: &Tensor, mask: &Tensor, scale: f64) -> Result<()> {
    let mask = if mask.dtype == DType::Bool { mask.clone() } else { cast(call, mask, DType::Bool)? };
    let scale = Input::Number(Number::Double(scale), x.dtype);
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask), scale];
    kernel::run(call, "apply_mask", &[out], &inputs, x.dtype, |_, v| vec![v[0] * v[1] * v[2]])
}
