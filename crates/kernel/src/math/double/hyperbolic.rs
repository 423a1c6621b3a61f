//! Hyperbolic functions, from the even and the odd part of the exponential.

use super::exponential::{core, reduce};
use super::parts::*;
use crate::builder::Value;

/// See [`crate::math::sinh`].
pub fn sinh<'b>(x: Value<'b>) -> Value<'b> {
    // With w = 2^-2k: 2^(k-1) ((1 - w) cosh(r) + (1 + w) sinh(r)).
    let (k, r) = reduce(Pair::exact(x.abs().min(712.0)));
    let c = core(r);
    let w = power_of_two(-(k + k).min(200));
    let one = fast_two_sum(x.like(1.0), -w);
    let s = two_sum(one.h, c.r);
    let t = two_sum(s.h, w * c.r);
    let rest = (1.0 + w) * c.odd + (1.0 - w) * c.even;
    let y = scale(t.h + ((s.l + t.l + one.l) + rest), k - 1);
    (x.is_nan() | is_below(x, -28)).select(x, flip(y, sign(x)))
}

/// See [`crate::math::cosh`].
pub fn cosh<'b>(x: Value<'b>) -> Value<'b> {
    let (k, r) = reduce(Pair::exact(x.abs().min(712.0)));
    let c = core(r);
    let w = power_of_two(-(k + k).min(200));
    let one = fast_two_sum(x.like(1.0), w);
    let s = two_sum(one.h, c.r);
    let t = two_sum(s.h, -(w * c.r));
    let rest = (1.0 + w) * c.even + (1.0 - w) * c.odd;
    let y = scale(t.h + ((s.l + t.l + one.l) + rest), k - 1);
    x.is_nan().select(x, y)
}

/// See [`crate::math::tanh`].
pub fn tanh<'b>(x: Value<'b>) -> Value<'b> {
    // With e = expm1(-2 |x|): -e / (2 + e). Beyond 22 it is 1.
    let a = x.abs().min(22.0);
    let (k, r) = reduce(Pair::exact(-(a + a)));
    let c = core(r);
    let power = power_of_two(k);
    let one = fast_two_sum(x.like(-1.0), power);
    let s = two_sum(one.h, power * c.r);
    let e = fast_two_sum(s.h, s.l + one.l + power * (c.even + c.odd));
    let d = fast_two_sum(x.like(2.0), e.h);
    let y = quotient(e.neg(), Pair::new(d.h, d.l + e.l)).value();
    (x.is_nan() | is_below(x, -28)).select(x, flip(y, sign(x)))
}
