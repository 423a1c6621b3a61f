//! Functions of one complex tensor.

use crate::check;
use crate::complex::pointwise::operator;
use crate::complex::route::Route;
use crate::operator::Operator;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::strided;
use dml_compute::complex::functions::sinc;
use dml_compute::complex::pointwise::Rule;
use dml_compute::complex::route::Unary;
use dml_compute::view::View;
use dml_kernel::math::complex;

pub fn route(name: &str) -> Option<Route> {
    macro_rules! functions {
        ($rule:expr; $($function:ident),*) => {
            match name {
                $(stringify!($function) => {
                    let family = concat!("complex_", stringify!($function));
                    return Route::unary(family, $rule, complex::$function);
                })*
                _ => {}
            }
        };
    }
    functions!(Rule::Complex; exp, exp2, expm1, log, log1p, log2, log10, sqrt, rsqrt, reciprocal, sigmoid);
    functions!(Rule::Complex; sin, cos, tan, sinh, cosh, tanh, asin, acos, atan, asinh, acosh, atanh);
    functions!(Rule::Exact; sgn);
    match name {
        "neg" => Route::unary("complex_neg", Rule::Exact, |z| z.negated()),
        "conj_physical" | "_conj_physical" => Route::unary("complex_conj", Rule::Exact, |z| z.conjugate()),
        "silu" => Route::unary("complex_silu", Rule::Complex, |z| {
            complex::div(z, complex::add(z.like(1.0), complex::exp(z.negated())))
        }),
        "sinc" => Route::unary("complex_sinc", Rule::Complex, sinc),
        "abs" => Some(Route::Run(abs)),
        "angle" => Some(Route::Run(angle)),
        _ => None,
    }
}

/// Runs a function of `self`.
pub fn unary(call: &mut Call, overload: &Operator, function: Unary) -> Result<()> {
    let x: AnyTensor = overload.argument(call, "self")?;
    let out = overload.out(call)?;
    operator(call, out, function.rule, function.family, &[x.into()], &|_, z| (function.body)(z[0]).parts())
}

fn abs(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    check!(!matches!(out, Out::InPlace(_)), Runtime, "In-place abs is not supported for complex tensors.");
    operator(call, out, Rule::Real, "complex_abs", &[x.into()], &|_, z| vec![complex::abs(z[0])])
}

/// The angles, contiguous, as on the CPU.
fn angle(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    let mut new = None;
    let shape = (x.sizes.as_slice(), &View::contiguous_strides(&x.sizes)[..]);
    let out = strided(call, out, &mut new, x.dtype.real(), shape)?;
    operator(call, out, Rule::Real, "complex_angle", &[x.into()], &|_, z| vec![complex::angle(z[0])])
}
