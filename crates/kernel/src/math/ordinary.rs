//! Functions of arguments that are known to be ordinary, without the instructions for others.

use super::{double, single};
use crate::builder::Value;
use crate::types::ScalarType;

/// Sine and cosine of a whole turn times a number of 0 to 1: of float32 within 1.8 ulp, of float64
/// within 4e-16.
pub fn turn_sin_cos(x: Value<'_>) -> [Value<'_>; 2] {
    match x.scalar() {
        ScalarType::F32 => single::turn_sin_cos(x),
        _ => {
            let angle = x * std::f64::consts::TAU;
            [double::sin(angle), double::cos(angle)]
        }
    }
}

/// Natural logarithm of a positive number that is neither subnormal nor infinite, with the bits of
/// the function for all.
pub fn log(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::normal_log(x),
        _ => double::log(x),
    }
}

/// Square root of a zero, or of a number between 2^-100 and 2^100: of float32 within 1 ulp, of
/// float64 correctly rounded.
pub fn sqrt(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::near_sqrt(x),
        _ => double::sqrt(x),
    }
}
