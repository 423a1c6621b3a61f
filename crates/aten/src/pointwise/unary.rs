//! Elementary functions of one tensor.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{self, operator};
use crate::{check, operators};
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::unary as functions;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    run(self, out; Rule::Float, Domain::Any, &functions::EXP) {
        "aten::exp(Tensor self) -> Tensor",
        "aten::exp_(Tensor(a!) self) -> Tensor(a!)",
        "aten::exp.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::EXP2) {
        "aten::exp2(Tensor self) -> Tensor",
        "aten::exp2_(Tensor(a!) self) -> Tensor(a!)",
        "aten::exp2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::EXPM1) {
        "aten::expm1(Tensor self) -> Tensor",
        "aten::expm1_(Tensor(a!) self) -> Tensor(a!)",
        "aten::expm1.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::LOG) {
        "aten::log(Tensor self) -> Tensor",
        "aten::log_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::LOG1P) {
        "aten::log1p(Tensor self) -> Tensor",
        "aten::log1p_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log1p.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::LOG2) {
        "aten::log2(Tensor self) -> Tensor",
        "aten::log2_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::LOG10) {
        "aten::log10(Tensor self) -> Tensor",
        "aten::log10_(Tensor(a!) self) -> Tensor(a!)",
        "aten::log10.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::SQRT) {
        "aten::sqrt(Tensor self) -> Tensor",
        "aten::sqrt_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::RSQRT) {
        "aten::rsqrt(Tensor self) -> Tensor",
        "aten::rsqrt_(Tensor(a!) self) -> Tensor(a!)",
        "aten::rsqrt.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::RECIPROCAL) {
        "aten::reciprocal(Tensor self) -> Tensor",
        "aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)",
        "aten::reciprocal.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::SIN) {
        "aten::sin(Tensor self) -> Tensor",
        "aten::sin_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::COS) {
        "aten::cos(Tensor self) -> Tensor",
        "aten::cos_(Tensor(a!) self) -> Tensor(a!)",
        "aten::cos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::TAN) {
        "aten::tan(Tensor self) -> Tensor",
        "aten::tan_(Tensor(a!) self) -> Tensor(a!)",
        "aten::tan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ASIN) {
        "aten::asin(Tensor self) -> Tensor",
        "aten::asin_(Tensor(a!) self) -> Tensor(a!)",
        "aten::asin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ACOS) {
        "aten::acos(Tensor self) -> Tensor",
        "aten::acos_(Tensor(a!) self) -> Tensor(a!)",
        "aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ATAN) {
        "aten::atan(Tensor self) -> Tensor",
        "aten::atan_(Tensor(a!) self) -> Tensor(a!)",
        "aten::atan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::SINH) {
        "aten::sinh(Tensor self) -> Tensor",
        "aten::sinh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::COSH) {
        "aten::cosh(Tensor self) -> Tensor",
        "aten::cosh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::cosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::TANH) {
        "aten::tanh(Tensor self) -> Tensor",
        "aten::tanh_(Tensor(a!) self) -> Tensor(a!)",
        "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::SIGMOID) {
        "aten::sigmoid(Tensor self) -> Tensor",
        "aten::sigmoid_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ERF) {
        "aten::erf(Tensor self) -> Tensor",
        "aten::erf_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ERFC) {
        "aten::erfc(Tensor self) -> Tensor",
        "aten::erfc_(Tensor(a!) self) -> Tensor(a!)",
        "aten::erfc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Number, &functions::ABS) {
        "aten::abs(Tensor self) -> Tensor",
        "aten::abs_(Tensor(a!) self) -> Tensor(a!)",
        "aten::abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Any, &functions::SIGN) {
        "aten::sign(Tensor self) -> Tensor",
        "aten::sign_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sign.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Any, &functions::SGN) {
        "aten::sgn(Tensor self) -> Tensor",
        "aten::sgn_(Tensor(a!) self) -> Tensor(a!)",
        "aten::sgn.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Number, &functions::FLOOR) {
        "aten::floor(Tensor self) -> Tensor",
        "aten::floor_(Tensor(a!) self) -> Tensor(a!)",
        "aten::floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Number, &functions::CEIL) {
        "aten::ceil(Tensor self) -> Tensor",
        "aten::ceil_(Tensor(a!) self) -> Tensor(a!)",
        "aten::ceil.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Number, &functions::TRUNC) {
        "aten::trunc(Tensor self) -> Tensor",
        "aten::trunc_(Tensor(a!) self) -> Tensor(a!)",
        "aten::trunc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Number, &functions::ROUND) {
        "aten::round(Tensor self) -> Tensor",
        "aten::round_(Tensor(a!) self) -> Tensor(a!)",
        "aten::round.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Float, &functions::FRAC) {
        "aten::frac(Tensor self) -> Tensor",
        "aten::frac_(Tensor(a!) self) -> Tensor(a!)",
        "aten::frac.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Bool, Domain::Any, &functions::LOGICAL_NOT) {
        "aten::logical_not(Tensor self) -> Tensor",
        "aten::logical_not_(Tensor(a!) self) -> Tensor(a!)",
        "aten::logical_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Integral, &functions::BITWISE_NOT) {
        "aten::bitwise_not(Tensor self) -> Tensor",
        "aten::bitwise_not_(Tensor(a!) self) -> Tensor(a!)",
        "aten::bitwise_not.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; &functions::ISPOSINF) {
        "aten::isposinf(Tensor self) -> Tensor",
        "aten::isposinf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; &functions::ISNEGINF) {
        "aten::isneginf(Tensor self) -> Tensor",
        "aten::isneginf.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    is_in(self, out; &functions::SIGNBIT) {
        "aten::signbit(Tensor self) -> Tensor",
        "aten::signbit.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Exact, Domain::Signed, &functions::NEG) {
        "aten::neg(Tensor self) -> Tensor",
        "aten::neg_(Tensor(a!) self) -> Tensor(a!)",
        "aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    conj_physical(self, out) {
        "aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)",
        "aten::conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Float, Domain::Any, &functions::ANGLE) {
        "aten::angle(Tensor self) -> Tensor",
        "aten::angle.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    run(self, out; Rule::Bool, Domain::Any, &functions::ISNAN) {
        "aten::isnan(Tensor self) -> Tensor",
    }
    run(self, out; Rule::Bool, Domain::Any, &functions::ISINF) {
        "aten::isinf(Tensor self) -> Tensor",
    }
}

/// The dtypes an operator takes, where CPU refuses some.
#[derive(Copy, Clone)]
pub enum Domain {
    /// All.
    Any,
    /// No bools.
    Number,
    /// No bools, in negation's words.
    Signed,
    /// Floats.
    Float,
    /// Integers and bools.
    Integral,
}

impl Domain {
    /// Checks a tensor that an operator of this name is given.
    pub fn check(self, x: &View, name: &str) -> Result<()> {
        match self {
            Domain::Any => Ok(()),
            Domain::Number => operator::check_not_bool(x, name),
            Domain::Signed => check_negation(x),
            Domain::Float => operator::check_float(x, name),
            Domain::Integral => operator::check_integral(x, name),
        }
    }
}

fn run(call: &mut Call, x: AnyTensor, out: Out, rule: Rule, domain: Domain, function: &'static Function) -> Result<()> {
    domain.check(&x, function.name)?;
    operator(call, out, rule, function, &[x], &[])
}

/// An operator that yields bools and casts them to nothing else.
fn is_in(call: &mut Call, x: AnyTensor, out: Out, function: &'static Function) -> Result<()> {
    let bools = out.given().is_none_or(|t| t.dtype == DType::Bool);
    check!(bools, Runtime, "{} does not support non-boolean outputs.", function.name);
    run(call, x, out, Rule::Bool, Domain::Any, function)
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

/// The conjugate, which of a real number is the number itself. `out=` casts nothing.
fn conj_physical(call: &mut Call, x: AnyTensor, out: Out) -> Result<()> {
    if let Out::InPlace(t) = out
        && !t.dtype.is_complex()
    {
        // Nothing is written, so it does not matter how it lies.
        call.ret(t.clone());
        return Ok(());
    }
    operator(call, out, Rule::Exact, &functions::CONJ_PHYSICAL, &[x], &[])
}
