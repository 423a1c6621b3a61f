//! Error-free transformations: the rounding error of an addition or a multiplication as a second
//! number.
//!
//! They are exact if the result and its error are normal numbers and nothing overflows. After T. J.
//! Dekker, "A floating-point technique for extending the available precision" (1971), and D. E.
//! Knuth, TAOCP 2, 4.2.2.

use crate::builder::Value;
use crate::types::ScalarType;

/// An unevaluated sum; `lo` is at most half an ulp of `hi`, or a few.
#[derive(Copy, Clone)]
pub(in crate::math) struct Sum<'b> {
    pub hi: Value<'b>,
    pub lo: Value<'b>,
}

/// `a + b`, exactly.
pub(super) fn two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    let hi = a + b;
    let b_part = hi - a;
    let lo = (a - (hi - b_part)) + (b - b_part);
    Sum { hi, lo }
}

/// `a + b`, exactly, where the exponent of `a` is not below that of `b`, or `a` is zero.
pub(super) fn fast_two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    let hi = a + b;
    Sum { hi, lo: b - (hi - a) }
}

/// Two halves of 12 bits, whose products are exact. Truncating the bits is cheaper than Veltkamp's
/// method, and never overflows.
pub(super) fn split(a: Value<'_>) -> Sum<'_> {
    let hi = head(a, 12);
    Sum { hi, lo: a - hi }
}

/// The number truncated to the first `bits` bits of its significand.
pub(super) fn head(a: Value<'_>, bits: u32) -> Value<'_> {
    let mask = u32::MAX << (24 - bits);
    (a.bitcast(ScalarType::U32) & mask).bitcast(ScalarType::F32)
}

/// `a * b`, exactly.
pub(in crate::math) fn two_product<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    let hi = a * b;
    let (x, y) = (split(a), split(b));
    let lo = ((x.hi * y.hi - hi) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo;
    Sum { hi, lo }
}

/// `a * a`, exactly.
pub(super) fn two_square(a: Value<'_>) -> Sum<'_> {
    let hi = a * a;
    let x = split(a);
    let lo = ((x.hi * x.hi - hi) + (x.hi + x.hi) * x.lo) + x.lo * x.lo;
    Sum { hi, lo }
}

/// `c[0] + c[1] x + c[2] x^2 + ..` by Horner's rule.
pub(super) fn polynomial<'b>(x: Value<'b>, c: &[f64]) -> Value<'b> {
    let (last, rest) = c.split_last().expect("a polynomial has a coefficient");
    rest.iter().rev().fold(x.like(*last), |sum, &c| sum * x + c)
}
