//! Powers of tensors and numbers.

use crate::pointwise::binary::copysign;
use dml_kernel::{ScalarType, Value, math};

/// The kernel of an exponent that is a number, of floats or of integers; its body takes the base and the exponent. Some need no
/// general power.
pub fn to_exponent(exponent: f64, float: bool) -> (&'static str, math::Binary) {
    let both: [(f64, &'static str, math::Binary); 4] = [
        (0.0, "pow_0", |x, _| x.like(1.0)),
        (1.0, "pow_1", |x, _| x),
        (2.0, "pow_2", |x, _| x * x),
        (3.0, "pow_3", |x, _| x * x * x),
    ];
    let floats: [(f64, &'static str, math::Binary); 4] = [
        (0.5, "pow_half", |x, _| math::sqrt(x)),
        (-0.5, "pow_minus_half", |x, _| math::rsqrt(x)),
        (-1.0, "pow_minus_1", |x, _| math::reciprocal(x)),
        (-2.0, "pow_minus_2", |x, _| math::reciprocal(math::mul(x, x))),
    ];
    let mut known = both.into_iter().chain(floats.into_iter().filter(|_| float));
    if let Some((_, family, body)) = known.find(|(e, ..)| *e == exponent) {
        return (family, body);
    }
    if float && is_large_and_odd(exponent) {
        return ("pow_odd", |x, e| copysign(math::pow(math::special::magnitude(x), e), x));
    }
    ("pow", power)
}

/// Whether an exponent is an odd integer that float32 has no room for: it would become an even one.
pub fn is_large_and_odd(exponent: f64) -> bool {
    let size = exponent.abs();
    (2f64.powi(24)..2f64.powi(53)).contains(&size) && size % 2.0 == 1.0
}

/// `base ^ exponent`
pub fn power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    if base.scalar().is_float() { math::pow(base, exponent) } else { integer_power(base, exponent) }
}

/// [`power`] with an exponent that is a number: of 0.5 and -0.5 the root, which differs from the power at -0.0 and -infinity.
pub fn power_or_root<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let general = power(base, exponent);
    if !base.scalar().is_float() {
        return general;
    }
    let root = exponent.lt(0).select(math::rsqrt(base), math::sqrt(base));
    exponent.abs().eq(0.5).select(root, general)
}

/// By squaring, modulo the integer's width. A negative exponent yields 0, except of 1 and -1.
fn integer_power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let b = base.builder();
    if base.scalar() == ScalarType::Bool {
        return base | !exponent;
    }
    let (result, square, left) = (b.var(base.like(1.0)), b.var(base), b.var(exponent));
    b.while_(
        || left.get().gt(0),
        || {
            b.if_((left.get() & 1).ne(0), || result.set(result.get() * square.get()));
            square.set(square.get() * square.get());
            left.set(left.get() >> 1);
        },
    );
    if !base.scalar().is_signed() {
        return result.get();
    }
    let one = base.like(1.0);
    let sign = (exponent & 1).ne(0).select(-one, one);
    let inverse = base.eq(1).select(one, base.eq(-1).select(sign, 0));
    exponent.lt(0).select(inverse, result.get())
}
