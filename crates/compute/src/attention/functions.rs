//! Elementwise functions of attention.

use crate::functions;
use dml_kernel::math::comparison::maximum;
use dml_kernel::{Value, math};

/// The weights of two results whose sums have these logarithms, what these are relative to, and the
/// sum of the weights. The logarithm of nothing is infinite.
fn joined<'b>(x: Value<'b>, y: Value<'b>) -> [Value<'b>; 4] {
    let [x, y] = [x, y].map(|log| log.eq(f64::INFINITY).select(log.like(f64::NEG_INFINITY), log));
    let largest = maximum(x, y);
    let base = largest.eq(f64::NEG_INFINITY).select(x.like(0.0), largest);
    let [x, y] = [x, y].map(|log| math::exp(log - base));
    [x, y, base, x + y]
}

functions! {
    /// `x`, and `value` where the mask is not 0.
    MASKED = "masked"(x, mask, value) => mask.ne(0).select(value, x);
    /// The sum of what two ranges of columns gave.
    ATTENTION_SUM = "attention_sum"(x, y) => x + y;
    /// The result of two ranges of columns, by the logarithms of their sums.
    ATTENTION_JOIN = "attention_join"(out, part, saved, part_saved) => {
        let [x, y, _, total] = joined(saved, part_saved);
        let sum = out * x + part * y;
        total.eq(0.0).select(sum.like(0.0), sum / total)
    };
    /// The logarithm of the sums of two ranges of columns.
    ATTENTION_JOIN_SAVED = "attention_join_saved"(saved, part_saved) => {
        let [_, _, base, total] = joined(saved, part_saved);
        total.eq(0.0).select(base.like(f64::INFINITY), base + math::log(total))
    };
}
