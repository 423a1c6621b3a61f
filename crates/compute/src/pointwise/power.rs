//! Powers of tensors and numbers.

use crate::functions;
use crate::pointwise::binary::copysign;
use crate::pointwise::complex;
use crate::pointwise::function::Function;
use dml_kernel::{ScalarType, Value, math};

/// The function of an exponent that is a number, of floats or of integers. Some need no general
/// power.
pub fn to_exponent(exponent: f64, float: bool) -> &'static Function {
    match exponent {
        0.0 => &POW_0,
        1.0 => &POW_1,
        2.0 => &POW_2,
        3.0 => &POW_3,
        0.5 if float => &POW_HALF,
        -0.5 if float => &POW_MINUS_HALF,
        -1.0 if float => &POW_MINUS_1,
        -2.0 if float => &POW_MINUS_2,
        odd if float && is_odd_beyond_float32(odd) => &POW_ODD,
        _ => &POW,
    }
}

functions! {
    /// `base ^ exponent`
    POW = "pow"(base, exponent).of_complex(&complex::POW) => power(base, exponent);
    /// A power to 0.
    POW_0 = "pow_0"(x, _exponent) => x.like(1.0);
    /// A power to 1.
    POW_1 = "pow_1"(x, _exponent) => x;
    /// A power to 2.
    POW_2 = "pow_2"(x, _exponent) => x * x;
    /// A power to 3.
    POW_3 = "pow_3"(x, _exponent) => x * x * x;
    /// A power of a float to 1/2.
    POW_HALF = "pow_half"(x, _exponent) => math::sqrt(x);
    /// A power of a float to -1/2.
    POW_MINUS_HALF = "pow_minus_half"(x, _exponent) => math::rsqrt(x);
    /// A power of a float to -1.
    POW_MINUS_1 = "pow_minus_1"(x, _exponent) => math::reciprocal(x);
    /// A power of a float to -2.
    POW_MINUS_2 = "pow_minus_2"(x, _exponent) => math::reciprocal(math::mul(x, x));
    /// A power of a float to an odd integer that float32 has no room for.
    POW_ODD = "pow_odd"(x, exponent) => copysign(math::pow(math::special::magnitude(x), exponent), x);
    /// 1 in the result's dtype, which is the option: a power of 1.
    POW_OF_1 = "pow_of_1"(exponent | o) => dml_kernel::convert(exponent.like(1.0), o.dtype);
    /// `base ^ exponent`, each with an exponent of its own that is a number: of 0.5 and -0.5 the
    /// root, which differs from the power at -0.0 and -infinity.
    FOREACH_POW_EACH = "foreach_pow_each"(base, exponent) => power_or_root(base, exponent);
}

/// Whether an exponent is an odd integer that float32 has no room for: it would become an even one.
pub fn is_odd_beyond_float32(exponent: f64) -> bool {
    let size = exponent.abs();
    (2f64.powi(24)..2f64.powi(53)).contains(&size) && size % 2.0 == 1.0
}

/// `base ^ exponent`
fn power<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    if base.scalar().is_float() { math::pow(base, exponent) } else { integer_power(base, exponent) }
}

/// [`power`] with an exponent that is a number: of 0.5 and -0.5 the root, which differs from the
/// power at -0.0 and -infinity.
fn power_or_root<'b>(base: Value<'b>, exponent: Value<'b>) -> Value<'b> {
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
