//! Functions of complex numbers, as pairs of real values. Special values follow C99's annex G where
//! PyTorch's CPU does, and no intermediate result overflows or underflows unless the function
//! itself does.

mod arithmetic;
mod exponential;
mod hyperbolic;
mod inverse;
mod magnitude;
mod number;

pub use arithmetic::{add, div, mul, reciprocal, sub};
pub use exponential::{exp, exp2, expm1, log, log1p, log2, log10, logaddexp, pow, rsqrt, sigmoid, sqrt};
pub use hyperbolic::{cos, cosh, sin, sinh, tan, tanh};
pub use inverse::{acos, acosh, asin, asinh, atan, atanh};
pub use magnitude::{abs, angle, sgn};
pub use number::Complex;

/// A function of one complex number.
pub type Unary = for<'b> fn(Complex<'b>) -> Complex<'b>;

/// The functions of one complex number, by name.
pub const UNARY: &[(&str, Unary)] = &[
    ("reciprocal", reciprocal),
    ("sqrt", sqrt),
    ("rsqrt", rsqrt),
    ("exp", exp),
    ("exp2", exp2),
    ("expm1", expm1),
    ("log", log),
    ("log1p", log1p),
    ("log2", log2),
    ("log10", log10),
    ("sigmoid", sigmoid),
    ("sinh", sinh),
    ("cosh", cosh),
    ("tanh", tanh),
    ("sin", sin),
    ("cos", cos),
    ("tan", tan),
    ("asinh", asinh),
    ("acosh", acosh),
    ("atanh", atanh),
    ("asin", asin),
    ("acos", acos),
    ("atan", atan),
    ("sgn", sgn),
];
