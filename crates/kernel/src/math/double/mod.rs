//! The functions in f64.

use crate::builder::Value;

mod division;
mod exponential;
mod hyperbolic;
mod logarithm;
mod parts;

pub use division::{div, fmod, reciprocal, rsqrt, sqrt};
pub use exponential::{exp, exp2, expm1, sigmoid};
pub use hyperbolic::{cosh, sinh, tanh};
pub use logarithm::{log, log1p, log2, log10};

/// Not written yet: the identity.
pub fn sin<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn cos<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn tan<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn asin<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn acos<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn atan<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn atan2<'b>(x: Value<'b>, _y: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn erf<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn erfc<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn pow<'b>(x: Value<'b>, _y: Value<'b>) -> Value<'b> {
    x
}
