//! The largest element of a row, and the sum of the exponentials of what the others are below it:
//! what softmax and cross-entropy divide by.

use crate::primitives::rows::{Share, pairwise};
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};

/// Elements taken at a time from a row that is not held.
pub const AHEAD: u32 = 8;

/// Of one row, known to all its invocations.
pub struct Exponentials<'b> {
    /// The largest element.
    pub largest: Value<'b>,
    /// `sum(exp(x - largest))`
    pub sum: Value<'b>,
}

impl<'b> Exponentials<'b> {
    /// Of a row that is held: its elements `x` at `at`, those that it does not have being minus
    /// infinity. Also `exp(x - largest)` of each, and 0 for those.
    pub fn of_held(row: &Share<'b>, at: &[Value<'b>], x: &[Value<'b>]) -> (Self, Vec<Value<'b>>) {
        let largest = row.max(pairwise(x.to_vec(), |x, y| x.max(y)));
        let terms: Vec<Value> =
            at.iter().zip(x).map(|(&k, &x)| row.has(k).select(math::exp(x - largest), 0.0)).collect();
        let sum = row.sum(pairwise(terms.clone(), |x, y| x + y));
        (Exponentials { largest, sum }, terms)
    }

    /// Of a row that is read once for it, in the scalar type given.
    pub fn of_long(b: &'b Builder, row: &Share<'b>, input: Pointer<'b>, scalar: ScalarType) -> Self {
        let max = b.var(b.float(scalar, f64::NEG_INFINITY));
        let sum = b.var(b.float(scalar, 0.0));
        // exp(x - m), which is 1 where both are the same infinity.
        let exp_below = |x: Value<'b>, m: Value<'b>| x.eq(m).select(x.like(1.0), math::exp(x - m));
        row.walk(AHEAD, |row, at| {
            let x = row.load(input, at, f64::NEG_INFINITY);
            let before = max.get();
            let now = before.max(pairwise(x.clone(), |x, y| x.max(y)));
            let terms = at.iter().zip(&x).map(|(&k, &x)| row.has(k).select(exp_below(x, now), 0.0)).collect();
            sum.set(sum.get() * exp_below(before, now) + pairwise(terms, |x, y| x + y));
            max.set(now);
        });
        let own = max.get();
        let largest = row.max(own);
        let sum = row.sum(sum.get() * exp_below(own, largest));
        // As of infinity minus infinity, which drivers may simplify.
        Exponentials { largest, sum: largest.is_inf().select(b.float(scalar, f64::NAN), sum) }
    }
}
