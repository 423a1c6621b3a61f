//! Functions of one complex tensor.

use crate::check;
use crate::complex::pointwise::operator;
use crate::complex::route::Route;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::strided;
use dml_compute::complex::functions;
use dml_compute::complex::pointwise::Rule;
use dml_compute::pointwise::function::Function;
use dml_compute::view::View;

pub fn route(name: &str) -> Option<Route> {
    let function = match name {
        "exp" => &functions::EXP,
        "exp2" => &functions::EXP2,
        "expm1" => &functions::EXPM1,
        "log" => &functions::LOG,
        "log1p" => &functions::LOG1P,
        "log2" => &functions::LOG2,
        "log10" => &functions::LOG10,
        "sqrt" => &functions::SQRT,
        "rsqrt" => &functions::RSQRT,
        "reciprocal" => &functions::RECIPROCAL,
        "sigmoid" => &functions::SIGMOID,
        "sin" => &functions::SIN,
        "cos" => &functions::COS,
        "tan" => &functions::TAN,
        "sinh" => &functions::SINH,
        "cosh" => &functions::COSH,
        "tanh" => &functions::TANH,
        "asin" => &functions::ASIN,
        "acos" => &functions::ACOS,
        "atan" => &functions::ATAN,
        "asinh" => &functions::ASINH,
        "acosh" => &functions::ACOSH,
        "atanh" => &functions::ATANH,
        "silu" => &functions::SILU,
        "sinc" => &functions::SINC,
        "sgn" => return Some(Route::Unary(Rule::Exact, &functions::SGN)),
        "neg" => return Some(Route::Unary(Rule::Exact, &functions::NEG)),
        "conj_physical" | "_conj_physical" => return Some(Route::Unary(Rule::Exact, &functions::CONJ)),
        "abs" => return Some(Route::Run(abs)),
        "angle" => return Some(Route::Run(angle)),
        _ => return None,
    };
    Some(Route::Unary(Rule::Complex, function))
}

/// Runs a function of `self`.
pub fn unary(call: &mut Call, overload: &Operator, rule: Rule, function: &'static Function) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let out = overload.out(call)?;
    operator(call, out, rule, function, &[x.into()])
}

fn abs(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    check!(!matches!(out, Out::InPlace(_)), Runtime, "In-place abs is not supported for complex tensors.");
    operator(call, out, Rule::Real, &functions::ABS, &[x.into()])
}

/// The angles, contiguous, as on the CPU.
fn angle(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    let mut new = None;
    let shape = (x.sizes.as_slice(), &View::contiguous_strides(&x.sizes)[..]);
    let out = strided(call, out, &mut new, x.dtype.real(), shape)?;
    operator(call, out, Rule::Real, &functions::ANGLE, &[x.into()])
}
