//! Hyperbolic functions.

use super::exact::{Sum, fast_two_sum};
use super::exponential::{clamp, expm1_sum};
use super::{INF, MAGNITUDE, NAN, SIGN, ratio, select_bits};
use crate::builder::Value;
use crate::types::Scalar::{F32, U32};

/// Hyperbolic tangent, within 0.85 ulp: `-t / (2 + t)` with `t = e^(-2 |x|) - 1`.
pub fn tanh(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let limited = clamp(magnitude.bitcast(F32), 0.000_1, 9.5);
    let (t, k) = expm1_sum(limited * -2.0);
    let t = fast_two_sum(t.hi, t.lo);
    let power = ((k + 127) << 23).bitcast(F32);
    let (hi, lo) = (t.hi * power, t.lo * power);
    let d = fast_two_sum(x.like(2.0), hi);
    let q = ratio(Sum { hi: -hi, lo: -lo }, Sum { hi: d.hi, lo: d.lo + lo });
    let result = (q.hi + q.lo).bitcast(U32) | (bits & SIGN);
    // x - x^3 / 3 rounds to x.
    let result = magnitude.lt(0x3980_0000).select(bits, result);
    select_bits(magnitude.gt(INF), NAN, result)
}
