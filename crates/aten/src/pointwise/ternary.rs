//! Fused multiply-adds of three tensors, and interpolation: the operations of optimizers.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::pointwise::operator::{Argument, check_float, checked_operator, operator, ruled_operator};
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::ternary as functions;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    addcmul(self, tensor1, tensor2, value, out).complex(Complex::Run(complex::arithmetic::addcmul)) {
        hot "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        hot "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten::addcmul.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) -> Tensor(a!)",
    }
    addcdiv(self, tensor1, tensor2, value, out).complex(Complex::Run(complex::arithmetic::addcdiv)) {
        hot "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        hot "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
        "aten::addcdiv.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) -> Tensor(a!)",
    }
    lerp_scalar(self, end, weight, out).complex(Complex::Run(complex::arithmetic::lerp)) {
        hot "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
        hot "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
        "aten::lerp.Scalar_out(Tensor self, Tensor end, Scalar weight, *, Tensor(a!) out) -> Tensor(a!)",
    }
    lerp_tensor(self, end, weight, out).complex(Complex::Run(complex::arithmetic::lerp)) {
        "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
        "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
        "aten::lerp.Tensor_out(Tensor self, Tensor end, Tensor weight, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn addcmul(call: &mut Call, t: AnyTensor, x: AnyTensor, y: AnyTensor, value: Number, out: Out) -> Result<()> {
    let check = |common| check_product(common, Some(value));
    checked_operator(call, out, &functions::ADDCMUL, &[t, x, y], &[value], check)
}

/// Checks the common dtype of addcmul's tensors, which must not be bool, and its factor.
pub fn check_product(common: DType, value: Option<Number>) -> Result<()> {
    check!(common != DType::Bool, NotImplemented, "\"addcmul_cpu_out\" not implemented for 'Bool'");
    check_value(common, value)
}

/// Checks the factor of addcmul and addcdiv, which must be representable in the type in which
/// floats are accumulated, or for other dtypes in the dtype itself.
fn check_value(common: DType, value: Option<Number>) -> Result<()> {
    let held = if common.is_float() { accumulator(common) } else { common };
    value.map_or(Ok(()), |value| check_fits(value, held))
}

fn addcdiv(call: &mut Call, t: AnyTensor, x: AnyTensor, y: AnyTensor, value: Number, out: Out) -> Result<()> {
    let check = |common| check_quotient(&x, &y, common, Some(value));
    checked_operator(call, out, &functions::ADDCDIV, &[t, x, y], &[value], check)
}

/// Checks the dividend and divisor of addcdiv, and its factor.
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
    operator(call, out, &functions::LERP, &[start, end], &[weight])
}

fn lerp_tensor(call: &mut Call, start: AnyTensor, end: AnyTensor, weight: AnyTensor, out: Out) -> Result<()> {
    let tensors = [start, end, weight];
    let check = |common| check_lerp_to(&start, &end, &weight, common);
    let rule = if weight.dim() > 0 { Rule::Exact } else { Rule::Promote };
    ruled_operator(call, out, rule, (&functions::LERP).into(), &tensors.map(Argument::Tensor), &check)
}

/// Checks the dtypes of lerp's start and end.
pub fn check_lerp(start: &View, end: &View) -> Result<()> {
    check_alike("end", end, start)?;
    check_float(start, "lerp")
}

/// [`check_lerp`] with a tensor as weight. A scalar weight may be of any dtype, and is converted;
/// the common dtype is `common`.
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
