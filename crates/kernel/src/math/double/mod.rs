//! The functions in f64.

use crate::builder::Value;

mod division;
mod parts;

pub use division::{div, fmod, reciprocal, rsqrt, sqrt};

/// Not written yet: the identity.
pub fn exp<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn exp2<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn expm1<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn log<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn log1p<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn log2<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn log10<'b>(x: Value<'b>) -> Value<'b> {
    x
}

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
pub fn sinh<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn cosh<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn tanh<'b>(x: Value<'b>) -> Value<'b> {
    x
}

/// Not written yet: the identity.
pub fn sigmoid<'b>(x: Value<'b>) -> Value<'b> {
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
