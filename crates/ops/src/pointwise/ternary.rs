//! Fused multiply forms of three tensors, and interpolation: what optimizers are made of.

use crate::check;
use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::overloads;
use crate::pointwise::elementwise::{Out, Rule, Slot, operator, operator_of};
use dml_kernel::Value;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(addcmul, "aten::addcmul", "aten::addcmul_", "aten::addcmul.out" @ 4),
    &overloads!(addcdiv, "aten::addcdiv", "aten::addcdiv_", "aten::addcdiv.out" @ 4),
    &overloads!(lerp_scalar, "aten::lerp.Scalar", "aten::lerp_.Scalar", "aten::lerp.Scalar_out" @ 3),
    &overloads!(lerp_tensor, "aten::lerp.Tensor", "aten::lerp_.Tensor", "aten::lerp.Tensor_out" @ 3),
];

/// `addcmul(self, tensor1, tensor2, value)`: `self + value * tensor1 * tensor2`
fn addcmul(call: &mut Call, out: Out) -> Result<()> {
    let value = [call.scalar(3)?];
    operator(call, out, Rule::Promote, "addcmul", &[0, 1, 2], &value, |_, v| addcmul_body(v))
}

/// `self + value * tensor1 * tensor2` of `[self, tensor1, tensor2, value]`.
pub fn addcmul_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    v[0] + v[3] * v[1] * v[2]
}

/// `addcdiv(self, tensor1, tensor2, value)`: `self + value * tensor1 / tensor2`
fn addcdiv(call: &mut Call, out: Out) -> Result<()> {
    let value = [call.scalar(3)?];
    check!(
        !(call.any_tensor(1)?.dtype.is_integer() && call.any_tensor(2)?.dtype.is_integer()),
        Runtime,
        "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true \
         division of tensor1 and tensor2."
    );
    operator(call, out, Rule::Promote, "addcdiv", &[0, 1, 2], &value, |_, v| addcdiv_body(v))
}

/// `self + value * tensor1 / tensor2` of `[self, tensor1, tensor2, value]`.
pub fn addcdiv_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    v[0] + v[3] * v[1] / v[2]
}

fn check_lerp(call: &Call) -> Result<()> {
    let (start, end) = (call.any_tensor(0)?.dtype, call.any_tensor(1)?.dtype);
    check!(start == end, Runtime, "expected dtype {start} for `end` but got dtype {end}");
    crate::pointwise::elementwise::check_float(call, 0, "lerp")
}

fn lerp_scalar(call: &mut Call, out: Out) -> Result<()> {
    check_lerp(call)?;
    let weight = Slot::Number(call.scalar(2)?);
    operator_of(call, out, Rule::Promote, "lerp", &[Slot::Tensor(0), Slot::Tensor(1), weight], |_, v| lerp_body(v))
}

fn lerp_tensor(call: &mut Call, out: Out) -> Result<()> {
    check_lerp(call)?;
    let slots = [Slot::Tensor(0), Slot::Tensor(1), Slot::Tensor(2)];
    operator_of(call, out, Rule::Promote, "lerp", &slots, |_, v| lerp_body(v))
}

/// Interpolation from `v[0]` to `v[1]` by `v[2]`, from the nearer end, as CPU does.
pub fn lerp_body<'b>(v: &[Value<'b>]) -> Value<'b> {
    let (start, end, weight) = (v[0], v[1], v[2]);
    let difference = end - start;
    weight.abs().lt(0.5).select(start + weight * difference, end - difference * (1.0 - weight))
}
