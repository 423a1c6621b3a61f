//! The Hurwitz zeta function, from which the polygamma functions follow.
//!
//! Ten terms of the series and the Euler-Maclaurin formula (DLMF 2.10). For negative q, where the
//! exponent must be an integer, two further series suffice, so the time is constant for every
//! argument.

use super::sum::{lift, lowered, pow_lifted};
use super::tables::EULER_MACLAURIN;
use crate::builder::Value;
use crate::math;
use crate::types::ScalarType;

/// Terms that are summed one by one.
const TERMS: u32 = 10;

/// `sum of (q + k)^-s` over k from 0, for s > 1 and q > 0.
fn series<'b>(s: Value<'b>, q: Value<'b>) -> Value<'b> {
    let b = s.builder();
    // Estimates the exponent of the largest term: the bits of q are nearly linear in its logarithm.
    // Small terms are scaled up, so that none is subnormal.
    let unsigned = s.scalar().unsigned();
    let digits = if s.scalar() == ScalarType::F64 { 52 } else { 23 };
    let exponent = (q.bitcast(unsigned) - q.like(1.0).bitcast(unsigned)).cast(s.scalar()) * 2f64.powi(-digits);
    let lifted = q.gt(1.0) & (s * exponent).gt(f64::from(lift(s.scalar())) - 40.0);
    let pow = |a: Value<'b>| pow_lifted(a, -s, lifted);
    let sum = b.var(s.like(0.0));
    let a = b.var(q);
    b.for_(b.u32(0), b.u32(TERMS), 1, |_| {
        sum.set(sum.get() + pow(a.get()));
        a.set(a.get() + 1.0);
    });
    let a = a.get();
    let power = pow(a);
    let r = math::reciprocal(a);
    let square = r * r;
    // B_2k / (2k)! s (s + 1) .. (s + 2k - 2) a^(-s - 2k + 1), until a term no longer counts.
    let tail = b.var(power * a / (s - 1.0) + 0.5 * power);
    let factor = b.var(power * r * s);
    let active = b.var(b.bool(true));
    for (k, coefficient) in EULER_MACLAURIN.iter().enumerate() {
        let term = factor.get() * *coefficient;
        let counts = active.get() & term.abs().gt(sum.get() * 1e-18) & term.is_inf().eq(b.bool(false));
        tail.set(tail.get() + counts.select(term, s.like(0.0)));
        active.set(counts);
        let k = 2.0 * k as f64 + 1.0;
        factor.set(factor.get() * square * ((s + k) * (s + (k + 1.0))));
    }
    let total = sum.get() + tail.get();
    let total = sum.get().is_inf().select(sum.get(), total);
    let result = b.var(lifted.select(lowered(total), total));
    // Where the powers are far below the result, only the integral and half a term contribute.
    let large = q.gt(2f64.powi(if s.scalar() == ScalarType::F64 { 60 } else { 30 }));
    b.if_(large, || {
        let sum = pow_lifted(q, 1.0 - s, large) * (math::reciprocal(s - 1.0) + math::div(s.like(0.5), q));
        result.set(lowered(sum));
    });
    result.get()
}

/// `sum of (q + k)^-s` over k from 0. Infinite at s = 1 and where a term is; NaN for s < 1, for a
/// negative q unless s is an integer, and for those infinite arguments for which it is on the CPU.
pub fn zeta<'b>(s: Value<'b>, q: Value<'b>) -> Value<'b> {
    let b = s.builder();
    let zero = q.is_zero();
    let left = zero | q.is_below_zero();
    let pole = zero | (q.le(-1.0) & q.eq(q.floor()));
    let plain = s.gt(1.0) & !pole & !s.is_inf() & !q.is_inf();
    let exponent = plain.select(s, s.like(2.0));
    let sign = odd(exponent).select(s.like(-1.0), s.like(1.0));
    // For negative q with the fraction f: the sum over all integers less the sum below q, zeta(s,
    // f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)). Near zero, where f would be rounded, q^-s +
    // zeta(s, 1 + q).
    let reflected = plain & left;
    let near_zero = reflected & q.gt(-0.5);
    let f = q - q.floor();
    let total = b.var(s.like(0.0));
    b.if_(near_zero, || total.set(math::pow(q, -exponent)));
    let rounds = (reflected & !near_zero).select(b.u32(3), 1);
    b.for_(b.u32(0), rounds, 1, |i| {
        let (first, second) = (i.eq(0), i.eq(1));
        let at = first.select(near_zero.select(1.0 + q, f), second.select(1.0 - f, 1.0 - q));
        let at = reflected.select(at, plain.select(q, s.like(1.0)));
        let weight = first.select(s.like(1.0), second.select(sign, -sign));
        let term = series(exponent, at);
        total.set(reflected.select(total.get() + weight * term, term));
    });
    let nan = s.like(f64::NAN);
    let infinity = s.like(f64::INFINITY);
    let at_infinity = q.gt(1.0).select(nan, q.eq(1.0).select(s.like(1.0), infinity));
    let result = s.is_inf().select(at_infinity, total.get());
    let result = q.is_inf().select(nan, result);
    let result = (left & s.ne(s.floor())).select(nan, result);
    let result = (s.is_nan() | q.is_nan()).select(nan, result);
    // Special cases are tested in the CPU's order, before NaN in the other argument.
    let result = pole.select(infinity, result);
    let result = s.lt(1.0).select(nan, result);
    s.eq(1.0).select(infinity, result)
}

/// Whether a float is an odd integer.
fn odd(x: Value<'_>) -> Value<'_> {
    let half = x * 0.5;
    half.ne(half.floor()) & x.eq(x.floor())
}
