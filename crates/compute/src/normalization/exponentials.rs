//! The maximum of a row, and the sum of the exponentials of its elements minus the maximum: the
//! normaliser of softmax and cross-entropy.

use crate::primitives::rows::{RowPart, pairwise};
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};

/// Elements that are loaded at a time from a row that is not held in registers.
pub const LOADS_IN_FLIGHT: u32 = 8;

/// The normaliser of one row, in all its invocations.
pub struct Exponentials<'b> {
    /// The largest element.
    pub largest: Value<'b>,
    /// `sum(exp(x - largest))`
    pub sum: Value<'b>,
}

impl<'b> Exponentials<'b> {
    /// Of a row in registers: its elements `x` with indices `at`, minus infinity out of range. Also
    /// returns `exp(x - largest)` of each element, 0 out of range.
    pub fn in_registers(row: &RowPart<'b>, at: &[Value<'b>], x: &[Value<'b>]) -> (Self, Vec<Value<'b>>) {
        let largest = row.max(pairwise(x.to_vec(), |x, y| x.max(y)));
        let terms: Vec<Value> =
            at.iter().zip(x).map(|(&k, &x)| row.has(k).select(math::exp(x - largest), 0.0)).collect();
        let sum = row.sum(pairwise(terms.clone(), |x, y| x + y));
        (Exponentials { largest, sum }, terms)
    }

    /// Of a long row, which is read once, in the given scalar type.
    pub fn streamed(b: &'b Builder, row: &RowPart<'b>, input: Pointer<'b>, scalar: ScalarType) -> Self {
        let max = b.var(b.float(scalar, f64::NEG_INFINITY));
        let sum = b.var(b.float(scalar, 0.0));
        // exp(x - m), which is 1 if both are the same infinity.
        let exp_below = |x: Value<'b>, m: Value<'b>| x.eq(m).select(x.like(1.0), math::exp(x - m));
        row.for_each_chunk(LOADS_IN_FLIGHT, |row, at| {
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
        // NaN like infinity minus infinity, which drivers may simplify.
        Exponentials { largest, sum: largest.is_inf().select(b.float(scalar, f64::NAN), sum) }
    }
}
