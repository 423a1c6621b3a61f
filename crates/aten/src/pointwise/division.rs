//! Division with rounding, and remainders.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::pointwise::operator::{Argument, operand_of, operator_of};
use crate::tensor::promote::result_type;
use crate::{check, operators};
use dml_compute::pointwise::division::{self as functions, Rounding};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::Operand;
use dml_compute::scalar::Scalar;
use dml_kernel::DType;

operators! {
    div(self, other, out).complex(Complex::Run(complex::arithmetic::div)) {
        hot "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
        hot "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    div_mode(self, other, rounding_mode, out).complex(Complex::Run(complex::arithmetic::div)) {
        "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        "aten::div_.Tensor_mode(Tensor(a!) self, Tensor other, *, str? rounding_mode) -> Tensor(a!)",
        "aten::div.out_mode(Tensor self, Tensor other, *, str? rounding_mode, Tensor(a!) out) -> Tensor(a!)",
    }
    floor_divide(self, other, out) {
        "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
        "aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::floor_divide.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    remainder(self, other, out) {
        "aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::remainder_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::remainder.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::remainder_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::remainder.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    }
    fmod(self, other, out) {
        "aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor",
        "aten::fmod_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::fmod.Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor",
        "aten::fmod_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
        "aten::fmod.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// True division; integers become floats.
fn div(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    operator_of(call, out, &functions::DIV, &[x.into(), Argument::Factor(y)])
}

fn div_mode(call: &mut Call, x: AnyTensor, y: AnyTensor, mode: Option<&str>, out: Out) -> Result<()> {
    match mode {
        None => div(call, x, y, out),
        Some("floor") => floor_divide(call, x, y, out),
        Some("trunc") => {
            let (x, y) = (TensorOrScalar::Tensor(x), TensorOrScalar::Tensor(y));
            divide(call, x, y, out, &functions::DIV_TRUNC)
        }
        Some(mode) => Err(Error::Runtime(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
        ))),
    }
}

fn floor_divide(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    divide(call, TensorOrScalar::Tensor(x), TensorOrScalar::Tensor(y), out, &functions::DIV_FLOOR)
}

/// With the sign of the divisor, as Python's `%`.
fn remainder(call: &mut Call, x: TensorOrScalar, y: TensorOrScalar, out: Out) -> Result<()> {
    divide(call, x, y, out, &functions::REMAINDER)
}

/// With the sign of the dividend, as C's `%`.
fn fmod(call: &mut Call, x: TensorOrScalar, y: TensorOrScalar, out: Out) -> Result<()> {
    divide(call, x, y, out, &functions::FMOD)
}

/// An operator whose second operand is a divisor. An integer divisor of zero that the host knows is
/// an immediate error.
fn divide(call: &mut Call, x: TensorOrScalar, y: TensorOrScalar, out: Out, function: &'static Function) -> Result<()> {
    let (dividend, divisor) = (number(call, x)?, number(call, y)?);
    let common = result_type(&[x.into(), y.into()], call.host.default_dtype());
    check!(common != DType::Bool, NotImplemented, "\"{}\" not implemented for 'Bool'", function.name);
    if let Some(Scalar::Int(0) | Scalar::Bool(false)) = divisor {
        let empty = matches!(x, TensorOrScalar::Tensor(x) if x.numel() == 0);
        check!(common.is_float() || empty, Runtime, "ZeroDivisionError");
    }
    let one_divides = divisor.is_some() || matches!(y, TensorOrScalar::Tensor(y) if y.numel() == 1);
    let rounding = Rounding { steps: !one_divides, dividend: dividend.is_some(), divisor: divisor.is_some() };
    operator_of(call, out, rounding.of(function, common), &[x.into(), y.into()])
}

/// The operand's value, if it is one number that the host knows.
fn number(call: &Call, operand: TensorOrScalar) -> Result<Option<Scalar>> {
    Ok(match operand {
        TensorOrScalar::Scalar(s) => Some(s),
        TensorOrScalar::Tensor(AnyTensor(t)) => match operand_of(call, t)? {
            Operand::Number(s) => Some(s),
            Operand::Tensor(_) => None,
        },
    })
}
