//! Choosing between values element by element: where, masked_fill, clamp.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::comparison::{maximum, minimum};
use crate::pointwise::elementwise::{self, Out, Rule, Slot, operator_of};
use crate::pointwise::kernel::{self, Input};
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::where.self", |c| where_(c, Out::New)),
        op("aten::where.self_out", |c| where_(c, Out::Arg(3))),
        op("aten::masked_fill_.Scalar", |c| masked_fill(c, Out::InPlace)),
        op("aten::masked_fill_.Tensor", |c| masked_fill(c, Out::InPlace)),
        op("aten::masked_fill.Scalar", |c| masked_fill(c, Out::New)),
        op("aten::masked_fill.Tensor", |c| masked_fill(c, Out::New)),
    ],
    &overloads!(clamp, "aten::clamp", "aten::clamp_", "aten::clamp.out" @ 3),
    &overloads!(clamp, "aten::clamp.Tensor", "aten::clamp_.Tensor", "aten::clamp.Tensor_out" @ 3),
    &overloads!(clamp_min, "aten::clamp_min", "aten::clamp_min_", "aten::clamp_min.out" @ 2),
    &overloads!(clamp_min, "aten::clamp_min.Tensor", "aten::clamp_min_.Tensor", "aten::clamp_min.Tensor_out" @ 2),
    &overloads!(clamp_max, "aten::clamp_max", "aten::clamp_max_", "aten::clamp_max.out" @ 2),
    &overloads!(clamp_max, "aten::clamp_max.Tensor", "aten::clamp_max_.Tensor", "aten::clamp_max.Tensor_out" @ 2),
];

/// `where(condition, self, other)`
fn where_(call: &mut Call, out: Out) -> Result<()> {
    let condition = call.any_tensor(0)?;
    check!(
        matches!(condition.dtype, DType::Bool | DType::U8),
        Runtime,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
        condition.dtype
    );
    let values = [Promoted::Tensor(call.any_tensor(1)?), Promoted::Tensor(call.any_tensor(2)?)];
    let common = result_type(&values, call.host.default_dtype());
    let inputs = [elementwise::input(call, 0)?, elementwise::input(call, 1)?, elementwise::input(call, 2)?];
    let out = elementwise::result_tensor(call, out, common, &inputs)?;
    kernel::run(call, "where", 0, &[&out], &inputs, common, |_, v| vec![v[0].ne(0).select(v[1], v[2])])?;
    call.ret(out);
    Ok(())
}

/// `masked_fill(self, mask, value)`
fn masked_fill(call: &mut Call, out: Out) -> Result<()> {
    let (t, mask) = (call.tensor(0)?.clone(), call.tensor(1)?.clone());
    check!(
        mask.dtype == DType::Bool,
        Runtime,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype
    );
    let common = t.dtype;
    let value = match &call.args[2] {
        crate::Arg::Scalar(s) => Input::Number(*s, common),
        _ => {
            let value = call.any_tensor(2)?;
            check!(
                value.dim() == 0,
                Runtime,
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.dim()
            );
            elementwise::input(call, 2)?
        }
    };
    check_value_fits(common, &value)?;
    let inputs = [Input::Tensor(t), Input::Tensor(mask), value];
    let out = elementwise::result_tensor(call, out, common, &inputs)?;
    kernel::run(call, "masked_fill", 0, &[&out], &inputs, common, |_, v| vec![v[1].ne(0).select(v[2], v[0])])?;
    call.ret(out);
    Ok(())
}

fn check_value_fits(dtype: DType, value: &Input) -> Result<()> {
    if let Input::Number(Number::Double(_), _) = value {
        check!(dtype.is_float(), Runtime, "value cannot be converted to type {dtype} without overflow");
    }
    if let Input::Number(value, _) = value {
        crate::movement::copy::check_fits(*value, dtype)?;
    }
    Ok(())
}

/// One bound of a clamp: argument `i`, a number or a tensor.
fn bound(call: &Call, i: usize) -> Result<Option<Slot>> {
    Ok(match &call.args[i] {
        crate::Arg::None => None,
        crate::Arg::Scalar(s) => Some(Slot::Scalar(*s)),
        _ => Some(Slot::Tensor(i)),
    })
}

/// `clamp(self, min, max)`; NaN in any of them yields NaN. Where the bounds cross, the upper one wins.
fn clamp(call: &mut Call, out: Out) -> Result<()> {
    match (bound(call, 1)?, bound(call, 2)?) {
        (Some(low), Some(high)) => {
            operator_of(call, out, Rule::Promote, "clamp", &[Slot::Tensor(0), low, high], |_, v| {
                minimum(maximum(v[0], v[1]), v[2])
            })
        }
        (Some(low), None) => {
            operator_of(call, out, Rule::Promote, "maximum", &[Slot::Tensor(0), low], |_, v| maximum(v[0], v[1]))
        }
        (None, Some(high)) => {
            operator_of(call, out, Rule::Promote, "minimum", &[Slot::Tensor(0), high], |_, v| minimum(v[0], v[1]))
        }
        (None, None) => {
            check!(false, Runtime, "torch.clamp: At least one of 'min' or 'max' must not be None");
            Ok(())
        }
    }
}

fn clamp_min(call: &mut Call, out: Out) -> Result<()> {
    let Some(low) = bound(call, 1)? else { return clamp(call, out) };
    operator_of(call, out, Rule::Promote, "maximum", &[Slot::Tensor(0), low], |_, v| maximum(v[0], v[1]))
}

fn clamp_max(call: &mut Call, out: Out) -> Result<()> {
    let Some(high) = bound(call, 1)? else { return clamp(call, out) };
    operator_of(call, out, Rule::Promote, "minimum", &[Slot::Tensor(0), high], |_, v| minimum(v[0], v[1]))
}
