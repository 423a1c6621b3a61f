//! Comparisons that tell subnormal numbers from zero and from each other on every adapter.
//!
//! An adapter may take them for zeros when it compares, and NVIDIA's do, though they keep them in
//! sums and products; so floats are compared as the integers that order alike. For numbers that a
//! kernel made itself `Value::lt` and its kin are cheaper.

use crate::builder::Value;
use crate::types::ScalarType;

/// An integer that is ordered as the float is, the same for zeros of both signs. NaN is beyond the
/// infinities.
fn order(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(if x.scalar() == ScalarType::F32 { ScalarType::I32 } else { ScalarType::I64 });
    let smallest = if x.scalar() == ScalarType::F32 { i64::from(i32::MIN) } else { i64::MIN };
    let negated = x.builder().int(bits.scalar(), smallest as u64) - bits;
    bits.lt(0).select(negated, bits)
}

fn neither_is_nan<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    !(a.is_nan() | b.is_nan())
}

/// `a == b`; false for NaN.
pub fn equal<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("equal", &[a, b], || match a.scalar().is_float() {
        true => order(a).eq(order(b)) & !a.is_nan(),
        false => a.eq(b),
    })
}

/// `a < b`; false if either is NaN. As everywhere, false is less than true.
pub fn less<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("less", &[a, b], || match a.scalar().is_float() {
        true => order(a).lt(order(b)) & neither_is_nan(a, b),
        false => a.lt(b),
    })
}

/// `a <= b`; false if either is NaN.
pub fn less_equal<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("less_equal", &[a, b], || match a.scalar().is_float() {
        true => order(a).le(order(b)) & neither_is_nan(a, b),
        false => a.le(b),
    })
}

/// The larger of two, of equal ones (zeros of both signs) the first; NaN if either is.
pub fn maximum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("maximum", &[a, b], || match a.scalar() {
        ScalarType::Bool => a | b,
        s if s.is_float() => (b.is_nan() & !a.is_nan() | less(a, b)).select(b, a),
        _ => a.max(b),
    })
}

/// The smaller of two, of equal ones (zeros of both signs) the first; NaN if either is.
pub fn minimum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("minimum", &[a, b], || match a.scalar() {
        ScalarType::Bool => a & b,
        s if s.is_float() => (b.is_nan() & !a.is_nan() | less(b, a)).select(b, a),
        _ => a.min(b),
    })
}
