//! Elementary functions of one tensor.

use dml_kernel::{ScalarType, Value, math};

/// `-x`; of a float by its sign bit, which keeps subnormal numbers.
pub fn negated(x: Value<'_>) -> Value<'_> {
    if x.scalar().is_float() { math::special::flipped_by(x, x.like(-1.0)) } else { -x }
}

/// Absolute value; of a bool, itself.
pub fn abs(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::Bool => x,
        s if s.is_float() => math::special::magnitude(x),
        _ => x.abs(),
    }
}

/// -1, 0 or 1; NaN yields 0 as on CPU.
pub fn sign(x: Value<'_>) -> Value<'_> {
    if x.scalar() == ScalarType::Bool {
        return x;
    }
    let (above, below) =
        if x.scalar().is_float() { (x.is_above_zero(), x.is_below_zero()) } else { (x.gt(0), x.lt(0)) };
    below.select(x.like(-1.0), above.select(x.like(1.0), 0))
}

/// Angle of a real number in the complex plane: pi left of zero, 0 elsewhere, NaN of NaN.
pub fn angle(x: Value<'_>) -> Value<'_> {
    x.is_nan().select(x, x.lt(0).select(x.like(std::f64::consts::PI), 0))
}

/// Rounding of a float; an integer is its own.
pub fn rounded<'b>(x: Value<'b>, how: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { how(x) } else { x }
}

/// Whether the sign bit is set, that of -0 and NaN included.
pub fn sign_bit(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::Bool => x.builder().bool(false),
        ScalarType::F32 => x.bitcast(ScalarType::I32).lt(0),
        ScalarType::F64 => x.bitcast(ScalarType::I64).lt(0),
        _ => x.lt(0),
    }
}
