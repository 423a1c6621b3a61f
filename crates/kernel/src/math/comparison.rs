//! Comparisons that distinguish subnormal numbers from zero and from each other on every adapter.
//!
//! An adapter may flush subnormal operands of comparisons to zero. NVIDIA's adapters do, though
//! they keep subnormal numbers in sums and products. So floats are compared as integers with the
//! same order. `Value::lt` and the like are cheaper, for numbers that cannot be subnormal.

use crate::builder::Value;
use crate::types::ScalarType;

/// An integer with the order of the float; zeros of both signs have the same one. NaN is beyond the
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

/// The larger of two values, the first one if they are equal (zeros of both signs); NaN if either
/// is NaN.
pub fn maximum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("maximum", &[a, b], || match a.scalar() {
        ScalarType::Bool => a | b,
        s if s.is_float() => (b.is_nan() & !a.is_nan() | less(a, b)).select(b, a),
        _ => a.max(b),
    })
}

/// The smaller of two values, the first one if they are equal (zeros of both signs); NaN if either
/// is NaN.
pub fn minimum<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    a.builder().function("minimum", &[a, b], || match a.scalar() {
        ScalarType::Bool => a & b,
        s if s.is_float() => (b.is_nan() & !a.is_nan() | less(b, a)).select(b, a),
        _ => a.min(b),
    })
}
