//! Fused multiply forms of three tensors, and interpolation: what optimizers are made of.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::pointwise::operator::{check_float, checked_operator, operator};
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::ternary as functions;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    addcmul(self, tensor1, tensor2, value, out) {
        "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten::addcmul.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) -> Tensor(a!)",
    }
    addcdiv(self, tensor1, tensor2, value, out) {
        "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten::addcdiv.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) -> Tensor(a!)",
    }
    lerp_scalar(self, end, weight, out) {
        "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
        "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
        "aten::lerp.Scalar_out(Tensor self, Tensor end, Scalar weight, *, Tensor(a!) out) -> Tensor(a!)",
    }
    lerp_tensor(self, end, weight, out) {
        "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
        "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
        "aten::lerp.Tensor_out(Tensor self, Tensor end, Tensor weight, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn addcmul(call: &mut Call, t: AnyTensor, x: AnyTensor, y: AnyTensor, value: Number, out: Out) -> Result<()> {
    let check = |common| check_product(common, Some(value));
    checked_operator(call, out, Rule::Promote, &functions::ADDCMUL, &[t, x, y], &[value], check)
}

/// Checks the dtype in which addcmul's tensors meet, bool has no products and sums, and the number
/// that it multiplies by.
pub fn check_product(common: DType, value: Option<Number>) -> Result<()> {
    check!(common != DType::Bool, NotImplemented, "\"addcmul_cpu_out\" not implemented for 'Bool'");
    check_value(common, value)
}

/// Checks the number of addcmul and addcdiv, which must fit the type that floats are accumulated
/// in, and other dtypes themselves.
fn check_value(common: DType, value: Option<Number>) -> Result<()> {
    let held = if common.is_float() { accumulator(common) } else { common };
    value.map_or(Ok(()), |value| check_fits(value, held))
}

fn addcdiv(call: &mut Call, t: AnyTensor, x: AnyTensor, y: AnyTensor, value: Number, out: Out) -> Result<()> {
    let check = |common| check_quotient(&x, &y, common, Some(value));
    checked_operator(call, out, Rule::Promote, &functions::ADDCDIV, &[t, x, y], &[value], check)
}

/// Checks the tensors of which addcdiv takes the quotient, and the number that it multiplies by.
pub fn check_quotient(x: &View, y: &View, common: DType, value: Option<Number>) -> Result<()> {
    check!(
        x.dtype.is_float() || y.dtype.is_float(),
        Runtime,
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
         division of tensor1 and tensor2."
    );
    check_value(common, value)
}

fn lerp_scalar(call: &mut Call, start: AnyTensor, end: AnyTensor, weight: Number, out: Out) -> Result<()> {
    check_lerp(&start, &end)?;
    operator(call, out, Rule::Promote, &functions::LERP, &[start, end], &[weight])
}

fn lerp_tensor(call: &mut Call, start: AnyTensor, end: AnyTensor, weight: AnyTensor, out: Out) -> Result<()> {
    let tensors = [start, end, weight];
    let check = |common| check_lerp_to(&start, &end, &weight, common);
    let rule = if weight.dim() > 0 { Rule::Exact } else { Rule::Promote };
    checked_operator(call, out, rule, &functions::LERP, &tensors, &[], check)
}

/// Checks the dtypes of what lerp goes from and to.
pub fn check_lerp(start: &View, end: &View) -> Result<()> {
    check_alike("end", end, start)?;
    check_float(start, "lerp")
}

/// [`check_lerp`] by a weight that is a tensor. One that is a number may be of any dtype, and is
/// converted as such; all meet in `common`.
pub fn check_lerp_to(start: &View, end: &View, weight: &View, common: DType) -> Result<()> {
    check_alike("end", end, start)?;
    if weight.dim() > 0 {
        check_alike("weight", weight, start)?;
    }
    check!(common.is_float(), NotImplemented, "\"lerp_kernel_tensor\" not implemented for '{common}'");
    Ok(())
}

/// Checks that an argument has the dtype of the first one.
pub fn check_alike(name: &str, t: &View, start: &View) -> Result<()> {
    let (expected, dtype) = (start.dtype, t.dtype);
    check!(
        dtype == expected,
        Runtime,
        "expected dtype {} for `{name}` but got dtype {}",
        type_name(expected),
        type_name(dtype)
    );
    Ok(())
}
