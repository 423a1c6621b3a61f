//! Numbers as unevaluated sums of two, for either float type, and exponentials of them.

use super::super::{double, single};
use crate::builder::{Value, Var};
use crate::types::ScalarType;

/// `hi + lo`, with `lo` small compared with `hi`.
#[derive(Copy, Clone)]
pub struct Sum<'b> {
    pub hi: Value<'b>,
    pub lo: Value<'b>,
}

impl<'b> Sum<'b> {
    /// The sum of a number and 0.
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

/// A variable of type [`Sum`].
#[derive(Copy, Clone)]
pub struct SumVar<'b> {
    hi: Var<'b>,
    lo: Var<'b>,
}

impl<'b> SumVar<'b> {
    /// A variable with an initial value.
    pub fn new(number: Value<'b>) -> SumVar<'b> {
        let b = number.builder();
        SumVar { hi: b.var(number), lo: b.var(number.like(0.0)) }
    }

    /// The current value.
    pub fn get(self) -> Sum<'b> {
        Sum { hi: self.hi.get(), lo: self.lo.get() }
    }

    /// Assigns a value.
    pub fn set(self, sum: Sum<'b>) {
        self.hi.set(sum.hi);
        self.lo.set(sum.lo);
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

/// The absolute value of `x`, by its bits: subnormal numbers are kept.
pub fn magnitude(x: Value<'_>) -> Value<'_> {
    let unsigned = x.scalar().unsigned();
    (x.bitcast(unsigned) & !x.like(-0.0).bitcast(unsigned)).bitcast(x.scalar())
}

/// `y` with its sign flipped if `x` is negative, by the bits.
pub fn flipped_by<'b>(y: Value<'b>, x: Value<'b>) -> Value<'b> {
    let unsigned = x.scalar().unsigned();
    let sign = x.bitcast(unsigned) & x.like(-0.0).bitcast(unsigned);
    (y.bitcast(unsigned) ^ sign).bitcast(y.scalar())
}

/// `x * factor` for a positive factor of 2^-100 to 2^60; `x` may be subnormal, and so may the
/// product for a tiny `x`.
pub fn product<'b>(x: Value<'b>, factor: Value<'b>) -> Value<'b> {
    if x.scalar() == ScalarType::F64 { double::product(x, factor) } else { single::product(x, factor) }
}

/// `x + y`; both may be subnormal.
pub fn sum<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    if x.scalar() == ScalarType::F64 { double::sum(x, y) } else { single::sum(x, y) }
}

/// The power of two by which intermediate results are scaled if the final result may be subnormal.
pub fn lift(scalar: ScalarType) -> u32 {
    if scalar == ScalarType::F64 { 640 } else { 64 }
}

/// `y * 2^-lift`, subnormal or not, for a `y` that is not negative.
pub fn lowered(y: Value<'_>) -> Value<'_> {
    let k = lift(y.scalar());
    if y.scalar() == ScalarType::F64 { double::lowered(y, k) } else { single::lowered(y, k) }
}

/// `x^y`, times `2^lift` where `lifted`.
pub fn pow_lifted<'b>(x: Value<'b>, y: Value<'b>, lifted: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let scale = lifted.select(b.i32(lift(x.scalar()) as i32), 0);
    if x.scalar() == ScalarType::F64 { double::pow_scaled(x, y, scale) } else { single::pow_scaled(x, y, scale) }
}

/// `e^x * 2^lift`, for an x that is not positive.
pub fn exp_lifted(x: Value<'_>) -> Value<'_> {
    let n = lift(x.scalar());
    if x.scalar() == ScalarType::F64 { double::exp_scaled(x, n) } else { single::exp_scaled(x, n) }
}

/// `erfc(x) * 2^lift`, for an x that is not negative.
pub fn erfc_lifted(x: Value<'_>) -> Value<'_> {
    let n = lift(x.scalar());
    if x.scalar() == ScalarType::F64 { double::erfc_scaled(x, n) } else { single::erfc_scaled(x, n) }
}

/// `e^x * factor`, infinite where it overflows; `factor` is of 2^-20 to 1.
pub fn exp_times<'b>(x: Sum<'b>, factor: Sum<'b>) -> Value<'b> {
    if x.hi.scalar() == ScalarType::F64 {
        double::exp_times((x.hi, x.lo), (factor.hi, factor.lo))
    } else {
        single::exp_times((x.hi, x.lo), (factor.hi, factor.lo))
    }
}

/// The logarithm of a positive number.
pub fn log_sum(x: Value<'_>) -> Sum<'_> {
    if x.scalar() == ScalarType::F64 {
        let log = double::log_sum(x);
        Sum { hi: log.h, lo: log.l }
    } else {
        let log = single::log_sum(x);
        Sum { hi: log.hi, lo: log.lo }
    }
}

/// `a * b + c`, rounded once or nearly so, as by a fused multiply-add, on every adapter.
pub fn fused<'b>(a: Value<'b>, b: Value<'b>, c: Value<'b>) -> Value<'b> {
    let p = two_product(a, b);
    let s = two_sum(p.hi, c);
    let rest = s.lo + p.lo;
    // If the rounding error is 0 the sum is returned unchanged, so that a zero keeps its sign.
    (p.hi.is_inf() | p.hi.is_nan() | s.hi.is_inf() | rest.eq(0)).select(s.hi, s.hi + rest)
}
