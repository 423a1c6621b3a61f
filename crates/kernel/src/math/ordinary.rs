//! Functions for arguments in a known range, without the instructions for special values.

use super::{double, single};
use crate::builder::Value;
use crate::types::ScalarType;

/// Sine and cosine of 2 pi times a number from 0 to 1: within 1.8 ulp for f32, within 4e-16 for
/// f64.
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
/// [`log`](super::log).
pub fn log(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::normal_log(x),
        _ => double::log(x),
    }
}

/// Square root of zero, or of a number between 2^-100 and 2^100: within 1 ulp for f32, correctly
/// rounded for f64.
pub fn sqrt(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::F32 => single::near_sqrt(x),
        _ => double::sqrt(x),
    }
}
