//! Numbers as unevaluated sums of two, for either float type, and exponentials of them.

use super::super::{double, single};
use crate::builder::Value;
use crate::types::ScalarType;

/// `hi + lo`, `lo` small beside `hi`.
#[derive(Copy, Clone)]
pub struct Sum<'b> {
    pub hi: Value<'b>,
    pub lo: Value<'b>,
}

impl<'b> Sum<'b> {
    /// One number.
    pub fn exact(hi: Value<'b>) -> Sum<'b> {
        Sum { hi, lo: hi.like(0.0) }
    }

    /// The sum, rounded.
    pub fn value(self) -> Value<'b> {
        self.hi + self.lo
    }

    /// `self * other`, to nearly twice the precision.
    pub fn times(self, other: Sum<'b>) -> Sum<'b> {
        let p = two_product(self.hi, other.hi);
        fast_two_sum(p.hi, p.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

/// `a + b` exactly (Knuth).
pub fn two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    let hi = a + b;
    let t = hi - a;
    Sum { hi, lo: (a - (hi - t)) + (b - t) }
}

/// `a + b` exactly where `|a| >= |b|` (Dekker).
pub fn fast_two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    let hi = a + b;
    Sum { hi, lo: b - (hi - a) }
}

/// `a * b` exactly (Dekker), far from the ends of the range.
pub fn two_product<'b>(a: Value<'b>, b: Value<'b>) -> Sum<'b> {
    if a.scalar() == ScalarType::F64 {
        let p = double::two_product(a, b);
        Sum { hi: p.h, lo: p.l }
    } else {
        let p = single::two_product(a, b);
        Sum { hi: p.hi, lo: p.lo }
    }
}

/// `e^x * factor`, infinite where it overflows and zero below the normal range; `factor` is of 2^-20 to 1.
pub fn exp_times<'b>(x: Sum<'b>, factor: Sum<'b>) -> Value<'b> {
    if x.hi.scalar() == ScalarType::F64 {
        double::exp_times((x.hi, x.lo), (factor.hi, factor.lo))
    } else {
        single::exp_times((x.hi, x.lo), (factor.hi, factor.lo))
    }
}

/// The logarithm of a positive normal number.
pub fn log_sum(x: Value<'_>) -> Sum<'_> {
    if x.scalar() == ScalarType::F64 {
        let log = double::log_sum(x);
        Sum { hi: log.h, lo: log.l }
    } else {
        let log = single::log_sum(x);
        Sum { hi: log.hi, lo: log.lo }
    }
}

/// `a * b + c`, rounded once or nearly: what a fused multiply-add gives, on every adapter.
pub fn fused<'b>(a: Value<'b>, b: Value<'b>, c: Value<'b>) -> Value<'b> {
    let p = two_product(a, b);
    let s = two_sum(p.hi, c);
    (p.hi.is_inf() | p.hi.is_nan() | s.hi.is_inf()).select(s.hi, s.hi + (s.lo + p.lo))
}
