//! Functions of arguments that are known to be ordinary: the bits are those of the function for all arguments, without the
//! instructions for the others.

use super::{double, single};
use crate::builder::Value;
use crate::types::ScalarType;

/// Sine and cosine of an angle whose magnitude is below 8192.
pub fn sin_cos(x: Value<'_>) -> [Value<'_>; 2] {
    match x.scalar() {
        ScalarType::F32 => single::near_sin_cos(x),
        _ => [double::sin(x), double::cos(x)],
    }
}

/// Natural logarithm of a positive number that is neither subnormal nor infinite.
pub fn log(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::normal_log(x),
        _ => double::log(x),
    }
}

/// Square root of a zero, or of a positive number that is neither subnormal nor infinite.
pub fn sqrt(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::normal_sqrt(x),
        _ => double::sqrt(x),
    }
}
