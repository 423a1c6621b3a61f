//! Powers of tensors and numbers.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::pointwise::operator::{Argument, operator_of, resized, ruled_operator, strided};
use crate::tensor::promote::{Promoted, result_type};
use crate::{check, operators};
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::power::{self as functions, to_exponent};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    of_tensor(self, exponent, out).complex(Complex::Run(complex::arithmetic::pow)) {
        "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
        "aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
        "aten::pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
    of_number(self, exponent, out).complex(Complex::Run(complex::arithmetic::pow)) {
        "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
        "aten::pow.Scalar_out(Scalar self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
    to_number(self, exponent, out).complex(Complex::Run(complex::arithmetic::pow)) {
        hot "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
        "aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
        "aten::pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// A tensor to the power of a tensor.
fn of_tensor(call: &mut Call, base: AnyTensor, exponent: AnyTensor, out: Out) -> Result<()> {
    check_not_bool(&[Promoted::Tensor(&base), Promoted::Tensor(&exponent)])?;
    operator_of(call, out, &functions::POW, &[base.into(), exponent.into()])
}

/// A number to the power of a tensor: the result is contiguous whatever the strides of the
/// exponent. All powers of 1 are 1, in every dtype.
fn of_number(call: &mut Call, base: Number, exponent: AnyTensor, out: Out) -> Result<()> {
    let promoted = [Promoted::Scalar(base), Promoted::Tensor(&exponent)];
    let dtype = result_type(&promoted, call.host.default_dtype());
    let (mut result, strides) = (None, View::contiguous_strides(&exponent.sizes));
    let mut given = None;
    let out = resized(call, out, &mut given, (&exponent.sizes, &strides))?;
    let out = strided(call, out, &mut result, dtype, (&exponent.sizes, &strides))?;
    if base.to_f64() == 1.0 && !matches!(base, Number::Bool(_)) {
        let dtype = out.tensor()?.dtype;
        return ruled_operator(call, out, Rule::As(dtype), functions::POW_OF_1.of(dtype), &[exponent.into()], &|_| {
            Ok(())
        });
    }
    check_not_bool(&promoted)?;
    let arguments = [Argument::Scalar(base), exponent.into()];
    operator_of(call, out, &functions::POW, &arguments)
}

/// Checks that the common dtype of base and exponent is not bool.
pub fn check_not_bool(operands: &[Promoted]) -> Result<()> {
    check!(result_type(operands, DType::F32) != DType::Bool, NotImplemented, "\"pow\" not implemented for 'Bool'");
    Ok(())
}

/// A tensor to the power of a number: common exponents are computed as products, roots and
/// reciprocals, as on the CPU.
fn to_number(call: &mut Call, base: AnyTensor, exponent: Number, out: Out) -> Result<()> {
    check_exponent(&base, exponent)?;
    let float = base.dtype.is_float() || matches!(exponent, Number::Double(_));
    let arguments = [base.into(), Argument::Scalar(exponent)];
    let e = exponent.to_f64();
    operator_of(call, out, to_exponent(e, float), &arguments)
}

/// Checks a scalar exponent.
pub fn check_exponent(base: &View, exponent: Number) -> Result<()> {
    let float = base.dtype.is_float() || matches!(exponent, Number::Double(_));
    check!(float || exponent.to_i64() >= 0, Runtime, "Integers to negative integer powers are not allowed.");
    let promoted = [Promoted::Tensor(base), Promoted::Scalar(exponent)];
    check_fits(exponent, result_type(&promoted, DType::F32))?;
    if matches!(exponent.to_f64(), 0.0 | 1.0) { Ok(()) } else { check_not_bool(&promoted) }
}
