//! Choosing between values element by element: where, masked_fill, clamp.

use crate::movement::copy::check_fits;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::pointwise::comparison::{maximum, minimum};
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::{Rule, common_dtype, input, operator_of, result_tensor};
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    where_(condition, self, other, out) {
        "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
        "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_fill(self, mask, value, out) {
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
        "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    }
    clamp(self, min, max, out) {
        "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
        "aten::clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
        "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        "aten::clamp_.Tensor(Tensor(a!) self, Tensor? min=None, Tensor? max=None) -> Tensor(a!)",
        "aten::clamp.Tensor_out(Tensor self, Tensor? min=None, Tensor? max=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    clamp_min(self, min, out) {
        "aten::clamp_min(Tensor self, Scalar min) -> Tensor",
        "aten::clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)",
        "aten::clamp_min.out(Tensor self, Scalar min, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
        "aten::clamp_min_.Tensor(Tensor(a!) self, Tensor min) -> Tensor(a!)",
        "aten::clamp_min.Tensor_out(Tensor self, Tensor min, *, Tensor(a!) out) -> Tensor(a!)",
    }
    clamp_max(self, max, out) {
        "aten::clamp_max(Tensor self, Scalar max) -> Tensor",
        "aten::clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)",
        "aten::clamp_max.out(Tensor self, Scalar max, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
        "aten::clamp_max_.Tensor(Tensor(a!) self, Tensor max) -> Tensor(a!)",
        "aten::clamp_max.Tensor_out(Tensor self, Tensor max, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn where_(call: &mut Call, condition: AnyTensor, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    check!(
        matches!(condition.dtype, DType::Bool | DType::U8),
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype
    );
    let common = common_dtype(call, &[x, y]);
    let inputs = [input(call, &condition)?, input(call, &x)?, input(call, &y)?];
    let out = result_tensor(call, out, common, &inputs)?;
    kernel::run(call, "where", &[&out], &inputs, common, |_, v| vec![v[0].ne(0).select(v[1], v[2])])?;
    call.ret(out);
    Ok(())
}

fn masked_fill(call: &mut Call, t: &Tensor, mask: &Tensor, value: TensorOrScalar, out: Out) -> Result<()> {
    check!(
        mask.dtype == DType::Bool,
        Runtime,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype
    );
    let common = t.dtype;
    let value = match value {
        TensorOrScalar::Scalar(s) => Input::Number(s, common),
        TensorOrScalar::Tensor(value) => {
            check!(
                value.dim() == 0,
                Runtime,
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.dim()
            );
            input(call, &value)?
        }
    };
    check_value_fits(common, &value)?;
    let inputs = [Input::Tensor(t.clone()), Input::Tensor(mask.clone()), value];
    let out = result_tensor(call, out, common, &inputs)?;
    kernel::run(call, "masked_fill", &[&out], &inputs, common, |_, v| vec![v[1].ne(0).select(v[2], v[0])])?;
    call.ret(out);
    Ok(())
}

fn check_value_fits(dtype: DType, value: &Input) -> Result<()> {
    if let Input::Number(Number::Double(_), _) = value {
        check!(dtype.is_float(), Runtime, "value cannot be converted to type {dtype} without overflow");
    }
    if let Input::Number(value, _) = value {
        check_fits(*value, dtype)?;
    }
    Ok(())
}

/// NaN in any of the three yields NaN. Where the bounds cross, the upper one wins.
fn clamp(
    call: &mut Call,
    x: AnyTensor,
    low: Option<TensorOrScalar>,
    high: Option<TensorOrScalar>,
    out: Out,
) -> Result<()> {
    match (low, high) {
        (Some(low), Some(high)) => {
            operator_of(call, out, Rule::Promote, "clamp", &[x.into(), low.into(), high.into()], |_, v| {
                minimum(maximum(v[0], v[1]), v[2])
            })
        }
        (Some(low), None) => clamp_min(call, x, low, out),
        (None, Some(high)) => clamp_max(call, x, high, out),
        (None, None) => Err(Error::Runtime("torch.clamp: At least one of 'min' or 'max' must not be None".to_owned())),
    }
}

fn clamp_min(call: &mut Call, x: AnyTensor, low: TensorOrScalar, out: Out) -> Result<()> {
    operator_of(call, out, Rule::Promote, "maximum", &[x.into(), low.into()], |_, v| maximum(v[0], v[1]))
}

fn clamp_max(call: &mut Call, x: AnyTensor, high: TensorOrScalar, out: Out) -> Result<()> {
    operator_of(call, out, Rule::Promote, "minimum", &[x.into(), high.into()], |_, v| minimum(v[0], v[1]))
}
