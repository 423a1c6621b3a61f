//! Addition, subtraction, multiplication and division of tensors.

use crate::call::{Call, Scalar};
use crate::check;
use crate::error::Result;
use crate::overloads;
use crate::pointwise::{Out, Rule, operator};
use crate::table::Operator;
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(add, "aten::add.Tensor", "aten::add_.Tensor", "aten::add.out" @ 3),
    &overloads!(sub, "aten::sub.Tensor", "aten::sub_.Tensor", "aten::sub.out" @ 3),
    &overloads!(mul, "aten::mul.Tensor", "aten::mul_.Tensor", "aten::mul.out" @ 2),
    &overloads!(div, "aten::div.Tensor", "aten::div_.Tensor", "aten::div.out" @ 2),
];

/// `add(self, other, alpha)`: `self + alpha * other`
fn add(call: &mut Call, out: Out) -> Result<()> {
    match alpha(call)? {
        None => operator(call, out, Rule::Promote, "add", &[0, 1], &[], |_, v| sum(v[0], v[1])),
        Some(a) => {
            operator(call, out, Rule::Promote, "add_alpha", &[0, 1], &[a], |_, v| sum(v[0], product(v[1], v[2])))
        }
    }
}

/// `sub(self, other, alpha)`: `self - alpha * other`
fn sub(call: &mut Call, out: Out) -> Result<()> {
    check!(
        call.any_tensor(0)?.dtype != DType::Bool && call.any_tensor(1)?.dtype != DType::Bool,
        Runtime,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
         the `~` or `logical_not()` operator instead."
    );
    match alpha(call)? {
        None => operator(call, out, Rule::Promote, "sub", &[0, 1], &[], |_, v| v[0] - v[1]),
        Some(a) => operator(call, out, Rule::Promote, "sub_alpha", &[0, 1], &[a], |_, v| v[0] - v[1] * v[2]),
    }
}

/// The `alpha` argument, or `None` where it is 1.
fn alpha(call: &Call) -> Result<Option<Scalar>> {
    let alpha = call.scalar(2)?;
    let float = call.any_tensor(0)?.dtype.is_float() || call.any_tensor(1)?.dtype.is_float();
    check!(
        float || !matches!(alpha, Scalar::Double(_)),
        Runtime,
        "For integral input tensors, argument alpha must not be a floating point number."
    );
    Ok((alpha.to_f64() != 1.0).then_some(alpha))
}

/// A sum; of bools, their disjunction.
pub fn sum<'b>(x: dml_kernel::Value<'b>, y: dml_kernel::Value<'b>) -> dml_kernel::Value<'b> {
    if x.scalar() == dml_kernel::Scalar::Bool { x | y } else { x + y }
}

/// A product; of bools, their conjunction.
pub fn product<'b>(x: dml_kernel::Value<'b>, y: dml_kernel::Value<'b>) -> dml_kernel::Value<'b> {
    if x.scalar() == dml_kernel::Scalar::Bool { x & y } else { x * y }
}

/// `mul(self, other)`
fn mul(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Promote, "mul", &[0, 1], &[], |_, v| product(v[0], v[1]))
}

/// `div(self, other)`: true division; integers become floats.
fn div(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Float, "div", &[0, 1], &[], |_, v| v[0] / v[1])
}
