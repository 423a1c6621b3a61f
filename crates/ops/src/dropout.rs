//! Dropout and its gradient.

use crate::call::{Call, Scalar as Number};
use crate::check;
use crate::copy::cast;
use crate::error::Result;
use crate::pointwise::{self, Input, Out};
use crate::random::bernoulli;
use crate::table::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::native_dropout", native_dropout),
    op("aten::_fused_dropout", fused_dropout),
    op("aten::native_dropout_backward", native_dropout_backward),
];

/// `native_dropout(input, p, train) -> (output, mask)`
fn native_dropout(call: &mut Call) -> Result<()> {
    let input = call.tensor(0)?.clone();
    let p = call.double(1)?;
    let train = call.opt_scalar(2)?.is_none_or(|t| t.to_i64() != 0);
    let inputs = [Input::Tensor(input.clone())];
    let out = pointwise::result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = pointwise::result_tensor(call, Out::New, DType::Bool, &inputs)?;
    if !train || p == 0.0 {
        crate::copy::device_copy(call, &input, &out)?;
        crate::copy::fill_with(call, &mask, Number::Bool(true))?;
    } else {
        check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {p}");
        bernoulli(call, usize::MAX, &mask, 1.0 - p)?;
        let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
        apply_mask(call, &out, &input, &mask, scale)?;
    }
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// `_fused_dropout(self, p, generator) -> (output, mask)`: `p` is what is kept, the mask of bytes
fn fused_dropout(call: &mut Call) -> Result<()> {
    let input = call.tensor(0)?.clone();
    let p = call.double(1)?;
    let inputs = [Input::Tensor(input.clone())];
    let out = pointwise::result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = pointwise::result_tensor(call, Out::New, DType::U8, &inputs)?;
    bernoulli(call, 2, &mask, p)?;
    apply_mask(call, &out, &input, &mask, 1.0 / p)?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// `native_dropout_backward(grad_output, mask, scale)`
fn native_dropout_backward(call: &mut Call) -> Result<()> {
    let (grad, mask) = (call.tensor(0)?.clone(), call.tensor(1)?.clone());
    let scale = call.double(2)?;
    let inputs = [Input::Tensor(grad.clone()), Input::Tensor(mask.clone())];
    let out = pointwise::result_tensor(call, Out::New, grad.dtype, &inputs)?;
    apply_mask(call, &out, &grad, &mask, scale)?;
    call.ret(out);
    Ok(())
}

/// `x * mask * scale`
fn apply_mask(call: &Call, out: &Tensor, x: &Tensor, mask: &Tensor, scale: f64) -> Result<()> {
    let mask = if mask.dtype == DType::Bool { mask.clone() } else { cast(call, mask, DType::Bool)? };
    let scale = Input::Number(Number::Double(scale), x.dtype);
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask), scale];
    pointwise::run(call, "apply_mask", 0, &[out], &inputs, x.dtype, |_, v| vec![v[0] * v[1] * v[2]])
}
