//! Elementwise functions of attention.

use crate::functions;
use dml_kernel::math::comparison::maximum;
use dml_kernel::{Value, math};

/// Given the log-sum-exps `x` and `y` of two partial softmaxes: `exp(x - base)`, `exp(y - base)`,
/// `base`, and the sum of the two exponentials. `base` is the larger of the two. An empty softmax
/// has a log-sum-exp of positive infinity, and counts as 0.
fn combine_weights<'b>(x: Value<'b>, y: Value<'b>) -> [Value<'b>; 4] {
    let [x, y] = [x, y].map(|log| log.eq(f64::INFINITY).select(log.like(f64::NEG_INFINITY), log));
    let largest = maximum(x, y);
    let base = largest.eq(f64::NEG_INFINITY).select(x.like(0.0), largest);
    let [x, y] = [x, y].map(|log| math::exp(log - base));
    [x, y, base, x + y]
}

functions! {
    /// `x`, or `value` where the mask is not 0.
    MASKED = "masked"(x, mask, value) => mask.ne(0).select(value, x);
    /// The sum of the gradients from two ranges of columns.
    ATTENTION_SUM = "attention_sum"(x, y) => x + y;
    /// The attention output over two ranges of columns, from both outputs and their log-sum-exps.
    ATTENTION_JOIN = "attention_join"(out, part, saved, part_saved) => {
        let [x, y, _, total] = combine_weights(saved, part_saved);
        let sum = out * x + part * y;
        total.eq(0.0).select(sum.like(0.0), sum / total)
    };
    /// The log-sum-exp over two ranges of columns.
    ATTENTION_JOIN_SAVED = "attention_join_saved"(saved, part_saved) => {
        let [_, _, base, total] = combine_weights(saved, part_saved);
        total.eq(0.0).select(base.like(f64::INFINITY), base + math::log(total))
    };
}
