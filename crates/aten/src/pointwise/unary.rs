//! Elementary functions of one tensor.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{self, operator};
use crate::{check, operators};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::rule::Dtypes;
use dml_compute::pointwise::unary as functions;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    run(self, out; of functions::EXP) {
        hot "aten::exp(Tensor self) -> Tensor",
        "aten::exp_(Tensor(a!) self) -> Tensor(a!)",
        "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::EXP2) {
        "aten::exp2(Tensor self) -> Tensor",
        "aten::exp2_(Tensor(a!) self) -> Tensor(a!)",
        "aten::exp2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::EXPM1) {
        "aten::expm1(Tensor self) -> Tensor",
        "aten::expm1_(Tensor(a!) self) -> Tensor(a!)",
        "aten::expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::LOG) {
        hot "aten::log(Tensor self) -> Tensor",
        "aten::log_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::LOG1P) {
        "aten::log1p(Tensor self) -> Tensor",
        "aten::log1p_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log1p.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::LOG2) {
        "aten::log2(Tensor self) -> Tensor",
        "aten::log2_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::LOG10) {
        "aten::log10(Tensor self) -> Tensor",
        "aten::log10_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log10.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SQRT) {
        hot "aten::sqrt(Tensor self) -> Tensor",
        "aten::sqrt_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::RSQRT) {
        hot "aten::rsqrt(Tensor self) -> Tensor",
        "aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)",
        "aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::RECIPROCAL) {
        hot "aten::reciprocal(Tensor self) -> Tensor",
        "aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)",
        "aten::reciprocal.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SIN) {
        "aten::sin(Tensor self) -> Tensor",
        "aten::sin_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::COS) {
        "aten::cos(Tensor self) -> Tensor",
        "aten::cos_(Tensor(a!) self) -> Tensor(a!)",
        "aten::cos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::TAN) {
        "aten::tan(Tensor self) -> Tensor",
        "aten::tan_(Tensor(a!) self) -> Tensor(a!)",
        "aten::tan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ASIN) {
        "aten::asin(Tensor self) -> Tensor",
        "aten::asin_(Tensor(a!) self) -> Tensor(a!)",
        "aten::asin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ACOS) {
        "aten::acos(Tensor self) -> Tensor",
        "aten::acos_(Tensor(a!) self) -> Tensor(a!)",
        "aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ATAN) {
        "aten::atan(Tensor self) -> Tensor",
        "aten::atan_(Tensor(a!) self) -> Tensor(a!)",
        "aten::atan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SINH) {
        "aten::sinh(Tensor self) -> Tensor",
        "aten::sinh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::COSH) {
        "aten::cosh(Tensor self) -> Tensor",
        "aten::cosh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::cosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::TANH) {
        hot "aten::tanh(Tensor self) -> Tensor",
        "aten::tanh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SIGMOID) {
        hot "aten::sigmoid(Tensor self) -> Tensor",
        "aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ERF) {
        "aten::erf(Tensor self) -> Tensor",
        "aten::erf_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ERFC) {
        "aten::erfc(Tensor self) -> Tensor",
        "aten::erfc_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erfc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ABS)
        .complex(Complex::Run(complex::functions::abs))
        .float8(float8::abs)
    {
        "aten::abs(Tensor self) -> Tensor",
        "aten::abs_(Tensor(a!) self) -> Tensor(a!)",
        "aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SIGN) {
        "aten::sign(Tensor self) -> Tensor",
        "aten::sign_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::SGN) {
        "aten::sgn(Tensor self) -> Tensor",
        "aten::sgn_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sgn.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::FLOOR) {
        "aten::floor(Tensor self) -> Tensor",
        "aten::floor_(Tensor(a!) self) -> Tensor(a!)",
        "aten::floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::CEIL) {
        "aten::ceil(Tensor self) -> Tensor",
        "aten::ceil_(Tensor(a!) self) -> Tensor(a!)",
        "aten::ceil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::TRUNC) {
        "aten::trunc(Tensor self) -> Tensor",
        "aten::trunc_(Tensor(a!) self) -> Tensor(a!)",
        "aten::trunc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ROUND) {
        "aten::round(Tensor self) -> Tensor",
        "aten::round_(Tensor(a!) self) -> Tensor(a!)",
        "aten::round.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::FRAC) {
        "aten::frac(Tensor self) -> Tensor",
        "aten::frac_(Tensor(a!) self) -> Tensor(a!)",
        "aten::frac.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::LOGICAL_NOT) {
        "aten::logical_not(Tensor self) -> Tensor",
        "aten::logical_not_(Tensor(a!) self) -> Tensor(a!)",
        "aten::logical_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::BITWISE_NOT) {
        "aten::bitwise_not(Tensor self) -> Tensor",
        "aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)",
        "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; of functions::ISPOSINF) {
        "aten::isposinf(Tensor self) -> Tensor",
        "aten::isposinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; of functions::ISNEGINF) {
        "aten::isneginf(Tensor self) -> Tensor",
        "aten::isneginf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; of functions::SIGNBIT) {
        "aten::signbit(Tensor self) -> Tensor",
        "aten::signbit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::NEG) {
        hot "aten::neg(Tensor self) -> Tensor",
        "aten::neg_(Tensor(a!) self) -> Tensor(a!)",
        "aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    conj_physical(self, out).complex(Complex::of(&functions::CONJ_PHYSICAL)) {
        "aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)",
        "aten::conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ANGLE).complex(Complex::Run(complex::functions::angle)) {
        "aten::angle(Tensor self) -> Tensor",
        "aten::angle.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; of functions::ISNAN)

        .float8(float8::own)
    {
        "aten::isnan(Tensor self) -> Tensor",
    }
    run(self, out; of functions::ISINF) {
        "aten::isinf(Tensor self) -> Tensor",
    }
}

/// Checks that a function supports the dtype of a tensor.
pub fn check_dtype(x: &View, function: &Function) -> Result<()> {
    match function.takes {
        Dtypes::Any => Ok(()),
        Dtypes::Number => operator::check_not_bool(x, function.name),
        Dtypes::Signed => check_negation(x),
        Dtypes::Float => operator::check_float(x, function.name),
        Dtypes::Integral => operator::check_integral(x, function.name),
    }
}

fn run(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    check_dtype(&x, function)?;
    operator(call, out, function, &[x], &[])
}

/// An operator that returns bools and does not cast them.
fn is_in(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    let bools = out.given().is_none_or(|t| t.dtype == DType::Bool);
    check!(bools, Runtime, "{} does not support non-boolean outputs.", function.name);
    run(call, x, out, function)
}

fn check_negation(x: &View) -> Result<()> {
    check!(
        x.dtype != DType::Bool,
        Dtype,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the \
         `~` or `logical_not()` operator instead."
    );
    Ok(())
}

/// The conjugate, which is the number itself for reals. `out=` is not cast.
fn conj_physical(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    if let Out::InPlace(t) = out
        && !t.dtype.is_complex()
    {
        // Nothing is written, so strides do not matter.
        call.ret(t.clone());
        return Ok(());
    }
    operator(call, out, &functions::CONJ_PHYSICAL, &[x], &[])
}
