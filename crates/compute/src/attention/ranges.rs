//! Attention over more columns than one launch may iterate over, on an adapter that limits the
//! length of loops: one launch for each range of columns, whose results are then combined.

use crate::attention::functions::{ATTENTION_JOIN, ATTENTION_JOIN_SAVED, ATTENTION_SUM};
use crate::attention::spec::{Role, Spec};
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::primitives::loops::max_loop_iterations;
use crate::view::View;

/// Splits `columns` into ranges, one launch each; a single range unless the adapter limits the
/// length of loops. `depths` are the lengths of the inner products that each tile computes, and
/// every workgroup iterates over the columns of `heads` heads.
pub fn ranges(cx: &Context, spec: &Spec, columns: i64, depths: &[i64], heads: i64) -> Result<Vec<[i64; 2]>> {
    let tile =
        1 + spec.accumulate_iterations() + depths.iter().map(|&depth| spec.product_iterations(depth)).sum::<i64>();
    let Some(allowed) = max_loop_iterations(cx) else { return Ok(vec![[0, columns]]) };
    let tiles = allowed / (tile * heads);
    check!(
        tiles > 0,
        TooLarge,
        "{}: inner products of {depths:?} elements, of {heads} heads, take more turns of loops than this adapter runs",
        cx.name
    );
    let step = tiles * i64::from(spec.columns());
    Ok((0..columns.max(1)).step_by(step as usize).map(|from| [from, (from + step).min(columns)]).collect())
}

/// Combines the result `part` (and its log-sum-exps `part_saved`) of a further range of columns
/// with `out` and `saved`, the result of the ranges before it. Gradients are added.
pub fn join(cx: &Context, role: Role, [out, saved]: [&View; 2], [part, part_saved]: [&View; 2]) -> Result<()> {
    let inputs = |all: &[&View]| all.iter().map(|&t| Input::Tensor(t.clone())).collect::<Vec<_>>();
    if role != Role::Forward {
        return kernel::run(cx, &ATTENTION_SUM, &[out], &inputs(&[out, part]), saved.dtype);
    }
    // The log-sum-exps as a column vector for each head, which broadcasts over a row of the output.
    let map_with_row = |t: &View| {
        let [batch, heads, queries] = [0, 1, 2].map(|d| t.sizes[d]);
        t.as_strided(&[batch, heads, queries, 1], &[t.strides[0], t.strides[1], t.strides[2], 1], 0)
    };
    let all = inputs(&[out, part, &map_with_row(saved), &map_with_row(part_saved)]);
    kernel::run(cx, &ATTENTION_JOIN, &[out], &all, saved.dtype)?;
    kernel::run(cx, &ATTENTION_JOIN_SAVED, &[saved], &inputs(&[saved, part_saved]), saved.dtype)
}
