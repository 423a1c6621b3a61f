//! Products of any numbers. On an adapter that flushes subnormal numbers, a product with a
//! subnormal operand or result is 0, or NaN if the other operand is infinite. Only in these cases
//! the product is computed from the mantissas, like a quotient.

use super::division::{LEADING, assemble};
use super::parts::*;
use crate::builder::Value;
use crate::types::ScalarType;

/// See [`crate::math::mul`]. Correctly rounded.
pub fn mul<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let result = b.var(x * y);
    let zero_or_nan = (magnitude(result.get()) - 1).ge(INFINITY);
    b.if_(zero_or_nan, || {
        let lost = (magnitude(x) - 1).max(magnitude(y) - 1).lt(INFINITY);
        b.if_(lost, || result.set(of_mantissas(x, y)));
    });
    result.get()
}

/// The product of two numbers that are neither zero nor NaN.
fn of_mantissas<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ax, ay) = (magnitude(x), magnitude(y));
    let ((mx, ex), (my, ey)) = (split_exponent(ax), split_exponent(ay));
    let p = two_product(mx, my);
    let carry = (bits(p.h) - ONE) >> 52;
    let significand = (bits(p.h) & MANTISSA) | LEADING;
    let finite = assemble(significand, p.l, ex + ey + carry.cast(ScalarType::I32));
    let magnitude = ax.max(ay).eq(INFINITY).select(b.int(ScalarType::U64, INFINITY), finite);
    float(magnitude | ((bits(x) ^ bits(y)) & SIGN))
}
