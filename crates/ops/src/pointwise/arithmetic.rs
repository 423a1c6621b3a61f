//! Addition, subtraction and multiplication of tensors.

use crate::check;
use crate::operator::call::{Call, Scalar};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::overloads;
use crate::pointwise::elementwise::{self, Out, Rule, Slot, operator, operator_of};
use crate::pointwise::kernel::{self, Input};
use crate::tensor::promote::{Promoted, result_type};
use dml_kernel::DType;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &overloads!(add, "aten::add.Tensor", "aten::add_.Tensor", "aten::add.out" @ 3),
    &overloads!(sub, "aten::sub.Tensor", "aten::sub_.Tensor", "aten::sub.out" @ 3),
    &overloads!(mul, "aten::mul.Tensor", "aten::mul_.Tensor", "aten::mul.out" @ 2),
    &[
        op("aten::rsub.Tensor", |c| reversed_sub(c, Out::New)),
        op("aten::rsub.Scalar", |c| reversed_sub(c, Out::New)),
        op("aten::rsub.Tensor_out", |c| reversed_sub(c, Out::Arg(3))),
        op("aten::rsub.Scalar_out", |c| reversed_sub(c, Out::Arg(3))),
    ],
    &overloads!(addr, "aten::addr", "aten::addr_", "aten::addr.out" @ 5),
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
    check_no_bools(call.any_tensor(0)?.dtype == DType::Bool || call.any_tensor(1)?.dtype == DType::Bool)?;
    match alpha(call)? {
        None => operator(call, out, Rule::Promote, "sub", &[0, 1], &[], |_, v| v[0] - v[1]),
        Some(a) => operator(call, out, Rule::Promote, "sub_alpha", &[0, 1], &[a], |_, v| v[0] - v[1] * v[2]),
    }
}

fn check_no_bools(any: bool) -> Result<()> {
    check!(
        !any,
        Dtype,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use \
         the `~` or `logical_not()` operator instead."
    );
    Ok(())
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

/// `rsub(self, other, alpha)`: `other - alpha * self`
fn reversed_sub(call: &mut Call, out: Out) -> Result<()> {
    let other = match &call.args[1] {
        crate::Arg::Scalar(s) => Slot::Scalar(*s),
        _ => Slot::Tensor(1),
    };
    let bool_other = match &call.args[1] {
        crate::Arg::Scalar(s) => matches!(s, Scalar::Bool(_)),
        _ => call.any_tensor(1)?.dtype == DType::Bool,
    };
    check_no_bools(call.any_tensor(0)?.dtype == DType::Bool || bool_other)?;
    let alpha = Slot::Number(call.scalar(2)?);
    operator_of(call, out, Rule::Promote, "rsub", &[Slot::Tensor(0), other, alpha], |_, v| v[1] - v[0] * v[2])
}

/// `addr(self, vec1, vec2, beta, alpha)`: `beta * self + alpha * vec1 vec2^T`; self is not read where beta is 0.
fn addr(call: &mut Call, out: Out) -> Result<()> {
    let (t, x, y) = (call.tensor(0)?.clone(), call.tensor(1)?.clone(), call.tensor(2)?.clone());
    check!(
        x.dim() == 1 && y.dim() == 1,
        Runtime,
        "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
        x.dim(),
        y.dim()
    );
    let (rows, columns) = (x.sizes[0], y.sizes[0]);
    let (beta, alpha) = (call.scalar(3)?, call.scalar(4)?);
    let promoted = [Promoted::Tensor(&t), Promoted::Tensor(&x), Promoted::Tensor(&y)];
    let common = result_type(&promoted, call.host.default_dtype());
    let float = common.is_float();
    check!(
        float || !matches!(beta, Scalar::Double(_)) && !matches!(alpha, Scalar::Double(_)),
        Runtime,
        "For integral input tensors, arguments alpha and beta must not be floating point numbers."
    );
    let fits = call.broadcast(&t.sizes, &[rows, columns])?;
    check!(
        fits.as_slice() == [rows, columns],
        Runtime,
        "The expanded size of the tensor {:?} must match [{rows}, {columns}]",
        t.sizes.as_slice()
    );
    let outer = [
        Input::Tensor(t),
        Input::Tensor(x.as_strided(&[rows, 1], &[x.strides[0], 0], 0)),
        Input::Tensor(y.as_strided(&[1, columns], &[0, y.strides[0]], 0)),
        Input::Number(beta, common),
        Input::Number(alpha, common),
    ];
    let result = match out {
        Out::InPlace => elementwise::in_place(call, call.tensor(0)?, common, &outer)?,
        Out::New => call.empty(common, &[rows, columns])?,
        _ => elementwise::result_tensor(call, out, common, &outer)?,
    };
    if beta.to_f64() == 0.0 {
        kernel::run(call, "addr_0", 0, &[&result], &outer[1..], common, |_, v| {
            vec![product(v[3], product(v[0], v[1]))]
        })?;
    } else {
        kernel::run(call, "addr", 0, &[&result], &outer, common, |_, v| {
            vec![sum(product(v[3], v[0]), product(v[4], product(v[1], v[2])))]
        })?;
    }
    call.ret(result);
    Ok(())
}
