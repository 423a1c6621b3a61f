//! Dropout and its gradient.

use crate::check;
use crate::movement::copy::{cast, device_copy, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{self, Input};
use crate::random::philox::bernoulli;
use crate::tensor::Tensor;
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::native_dropout", native_dropout),
    op("aten::native_dropout_backward", |c| masked_scale(c, None)),
    op("aten::_fused_dropout", fused_dropout),
    op("aten::_masked_scale", |c| masked_scale(c, Some(DType::U8))),
];

/// `native_dropout(input, p, train) -> (output, mask)`
fn native_dropout(call: &mut Call) -> Result<()> {
    let (p, train) = (call.double(1)?, call.opt_scalar(2)?.is_none_or(|t| t.to_i64() != 0));
    if train && p != 0.0 {
        check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {p}");
        return dropout(call, 1.0 - p, usize::MAX, DType::Bool);
    }
    let input = call.tensor(0)?;
    let inputs = [Input::Tensor(input.clone())];
    let out = elementwise::result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = elementwise::result_tensor(call, Out::New, DType::Bool, &inputs)?;
    device_copy(call, input, &out)?;
    fill_with(call, &mask, Number::Bool(true))?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// `_fused_dropout(self, p, generator) -> (output, mask)`: `p` is the probability of staying.
fn fused_dropout(call: &mut Call) -> Result<()> {
    let p = call.double(1)?;
    check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {}", 1.0 - p);
    dropout(call, p, 2, DType::U8)
}

/// Elements stay with probability `keep`, scaled so that their mean does too.
fn dropout(call: &mut Call, keep: f64, generator: usize, mask: DType) -> Result<()> {
    let input = call.tensor(0)?;
    check!(input.dtype.is_float(), NotImplemented, "\"dropout\" not implemented for '{}'", input.dtype);
    let inputs = [Input::Tensor(input.clone())];
    let out = elementwise::result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = elementwise::result_tensor(call, Out::New, mask, &inputs)?;
    bernoulli(call, generator, &mask, keep)?;
    apply_mask(call, &out, input, &mask, if keep == 0.0 { 0.0 } else { 1.0 / keep })?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// `native_dropout_backward(grad_output, mask, scale)`, `_masked_scale(self, mask, scale)`, whose mask is of bytes
fn masked_scale(call: &mut Call, mask_dtype: Option<DType>) -> Result<()> {
    let (x, mask) = (call.tensor(0)?, call.tensor(1)?);
    let scale = call.double(2)?;
    check!(mask_dtype.is_none_or(|d| d == mask.dtype), Runtime, "mask should be torch.uint8 dtype");
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask.clone())];
    let out = elementwise::result_tensor(call, Out::New, x.dtype, &inputs)?;
    apply_mask(call, &out, x, mask, scale)?;
    call.ret(out);
    Ok(())
}

/// `x * mask * scale`
fn apply_mask(call: &Call, out: &Tensor, x: &Tensor, mask: &Tensor, scale: f64) -> Result<()> {
    let mask = if mask.dtype == DType::Bool { mask.clone() } else { cast(call, mask, DType::Bool)? };
    let scale = Input::Number(Number::Double(scale), x.dtype);
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask), scale];
    kernel::run(call, "apply_mask", 0, &[out], &inputs, x.dtype, |_, v| vec![v[0] * v[1] * v[2]])
}
