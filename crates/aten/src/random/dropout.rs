//! Dropout and its gradient.

use crate::movement::copies::checked_copy;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{Argument, common_dtype, input, operator_of, result_tensor};
use crate::random::fill::bernoulli;
use crate::{check, operators};
use dml_compute::movement::copy::fill_with;
use dml_compute::pointwise::arithmetic::MUL;
use dml_compute::pointwise::kernel::{self, Input as Factor};
use dml_compute::random::Generator;
use dml_compute::random::dropout::{apply_mask, fused_dropout_kernel};
use dml_compute::random::functions::APPLY_MASK;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    native_dropout(input, p, train) {
        hot "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    }
    native_dropout_backward(grad_output, mask, scale) {
        hot "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    }
    fused_dropout(self, p, generator) {
        "aten::_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
    }
    masked_scale(self, mask, scale) {
        "aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
    }
}

/// Returns the result and the mask.
fn native_dropout(call: &mut Call, input: &View, p: f64, train: Option<bool>) -> Result<()> {
    if train.unwrap_or(true) && p != 0.0 {
        check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {p}");
        return dropout(call, input, 1.0 - p, None, DType::Bool);
    }
    let inputs = [Factor::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, DType::Bool, &inputs)?;
    checked_copy(call, input, &out)?;
    fill_with(call, &mask, Number::Bool(true))?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// Returns the result and the mask; `p` is the probability to keep an element.
fn fused_dropout(call: &mut Call, input: &View, p: f64, generator: Option<Generator>) -> Result<()> {
    check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {}", 1.0 - p);
    dropout(call, input, p, generator, DType::U8)
}

/// Elements are kept with probability `keep`, and scaled so that the mean is unchanged.
fn dropout(call: &mut Call, input: &View, keep: f64, generator: Option<Generator>, mask: DType) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"dropout\" not implemented for '{}'", input.dtype);
    let inputs = [Factor::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, mask, &inputs)?;
    let scale = if keep == 0.0 { 0.0 } else { 1.0 / keep };
    if !fused_dropout_kernel(call, generator.as_ref(), [&out, &mask, input], keep, scale)? {
        bernoulli(call, generator.as_ref(), &mask, keep)?;
        apply_mask(call, &out, input, &mask, scale)?;
    }
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// `grad * mask * scale`, where each product is computed in the promoted dtype of its factors:
/// integers become floats in the second product.
fn native_dropout_backward(call: &mut Call, grad: AnyTensor, mask: AnyTensor, scale: f64) -> Result<()> {
    let common = common_dtype(call, &[grad, mask]);
    let factors = [Argument::Tensor(grad), Argument::Tensor(mask), Argument::Number(Number::Double(scale))];
    if common.is_float() {
        return operator_of(call, Out::New, APPLY_MASK.of(common), &factors);
    }
    let inputs = [input(call, &grad)?, input(call, &mask)?];
    let masked = result_tensor(call, Out::New, common, &inputs)?;
    kernel::run(call, &MUL, &[&masked], &inputs, common)?;
    let factors = [Argument::Tensor(AnyTensor(&masked)), Argument::Scalar(Number::Double(scale))];
    operator_of(call, Out::New, &MUL, &factors)
}

/// With a mask of bytes.
fn masked_scale(call: &mut Call, x: &View, mask: &View, scale: f64) -> Result<()> {
    check!(mask.dtype == DType::U8, Runtime, "mask should be torch.uint8 dtype");
    let inputs = [Factor::Tensor(x.clone()), Factor::Tensor(mask.clone())];
    let out = result_tensor(call, Out::New, x.dtype, &inputs)?;
    apply_mask(call, &out, x, mask, scale)?;
    call.ret(out);
    Ok(())
}
