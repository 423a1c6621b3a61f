//! Attention over more columns than a launch may walk on an adapter with short loops: one range
//! after another, each with a result of its own, which are joined.

use crate::attention::functions::{ATTENTION_JOIN, ATTENTION_JOIN_SAVED, ATTENTION_SUM};
use crate::attention::spec::{Role, Spec};
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::primitives::loops::turns_allowed;
use crate::view::View;

/// The ranges of `columns` that a launch each walks: one, but where loops may not be that long.
/// `depths` are those of the inner products that a tile takes, and every workgroup walks the
/// columns of `heads` heads.
pub fn ranges(cx: &Context, spec: &Spec, columns: i64, depths: &[i64], heads: i64) -> Result<Vec<[i64; 2]>> {
    let tile = 1 + spec.accumulate_turns() + depths.iter().map(|&depth| spec.product_turns(depth)).sum::<i64>();
    let Some(allowed) = turns_allowed(cx) else { return Ok(vec![[0, columns]]) };
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

/// Joins what `role` made of further columns, `part` with its `part_saved`, with what it made of
/// those before.
pub fn join(cx: &Context, role: Role, [out, saved]: [&View; 2], [part, part_saved]: [&View; 2]) -> Result<()> {
    let inputs = |all: &[&View]| all.iter().map(|&t| Input::Tensor(t.clone())).collect::<Vec<_>>();
    if role != Role::Forward {
        return kernel::run(cx, &ATTENTION_SUM, &[out], &inputs(&[out, part]), saved.dtype);
    }
    // A column, of the rows of each head.
    let by_row = |t: &View| {
        let [batch, heads, queries] = [0, 1, 2].map(|d| t.sizes[d]);
        t.as_strided(&[batch, heads, queries, 1], &[t.strides[0], t.strides[1], t.strides[2], 1], 0)
    };
    let all = inputs(&[out, part, &by_row(saved), &by_row(part_saved)]);
    kernel::run(cx, &ATTENTION_JOIN, &[out], &all, saved.dtype)?;
    kernel::run(cx, &ATTENTION_JOIN_SAVED, &[saved], &inputs(&[saved, part_saved]), saved.dtype)
}
