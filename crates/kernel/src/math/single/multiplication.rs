//! Products of any numbers. On an adapter that flushes subnormal numbers, a product with a
//! subnormal operand or result is 0, or NaN if the other operand is infinite. Only in these cases
//! the product is computed from the significands, like a quotient.

use super::division::{Quotient, assemble};
use super::exact::two_product;
use super::subnormal::normalized;
use super::{INF, MAGNITUDE, ONE, SIGN};
use crate::builder::Value;
use crate::types::ScalarType::{F32, U32};

/// `x * y`, correctly rounded.
pub fn mul<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let result = b.var(x * y);
    let zero_or_nan = ((result.get().bitcast(U32) & MAGNITUDE) - 1).ge(INF);
    b.if_(zero_or_nan, || {
        let magnitude = |x: Value<'b>| x.bitcast(U32) & MAGNITUDE;
        let lost = (magnitude(x) - 1).max(magnitude(y) - 1).lt(INF);
        b.if_(lost, || result.set(of_significands(x, y)));
    });
    result.get()
}

/// The product of two numbers that are neither zero nor NaN.
fn of_significands<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ux, uy) = (x.bitcast(U32), y.bitcast(U32));
    let (ax, ay) = (ux & MAGNITUDE, uy & MAGNITUDE);
    let (nx, ny) = (normalized(ax), normalized(ay));
    let significand = |n: Value<'b>| ((n.bitcast(U32) & 0x7f_ffff) | ONE).bitcast(F32);
    let p = two_product(significand(nx), significand(ny));
    let bits = p.hi.bitcast(U32);
    let carry = bits.ge(0x4000_0000u32).select(b.i32(1), 0);
    let q = Quotient { significand: (bits & 0x7f_ffff) | 0x80_0000, exponent: carry, rest: p.lo };
    let finite = assemble(&q, (nx >> 23) + (ny >> 23) - 254 + carry);
    let bits = ax.max(ay).eq(INF).select(b.u32(INF), finite);
    (bits | ((ux ^ uy) & SIGN)).bitcast(F32)
}
