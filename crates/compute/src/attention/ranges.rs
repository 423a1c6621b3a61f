//! Attention over more columns than a launch may walk on an adapter with short loops: one range after another, each
//! with a result of its own, which are joined.

use crate::attention::spec::{Role, Spec};
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::primitives::loops::turns_allowed;
use crate::view::View;
use dml_kernel::math::comparison::maximum;
use dml_kernel::{Value, math};

/// The ranges of `columns` that a launch each walks: one, but where loops may not be that long. `depths` are those of the
/// inner products that a tile takes, and every workgroup walks the columns of `heads` heads.
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

/// Joins what `role` made of further columns, `part` with its `part_saved`, with what it made of those before.
pub fn join(cx: &Context, role: Role, [out, saved]: [&View; 2], [part, part_saved]: [&View; 2]) -> Result<()> {
    let inputs = |all: &[&View]| all.iter().map(|&t| Input::Tensor(t.clone())).collect::<Vec<_>>();
    if role != Role::Forward {
        return kernel::run(cx, "attention_sum", &[out], &inputs(&[out, part]), saved.dtype, |_, v| vec![v[0] + v[1]]);
    }
    // A column, of the rows of each head.
    let by_row = |t: &View| {
        let [batch, heads, queries] = [0, 1, 2].map(|d| t.sizes[d]);
        t.as_strided(&[batch, heads, queries, 1], &[t.strides[0], t.strides[1], t.strides[2], 1], 0)
    };
    let all = inputs(&[out, part, &by_row(saved), &by_row(part_saved)]);
    kernel::run(cx, "attention_join", &[out], &all, saved.dtype, |_, v| {
        let [x, y, _, total] = joined(v[2], v[3]);
        let sum = v[0] * x + v[1] * y;
        vec![total.eq(0.0).select(sum.like(0.0), sum / total)]
    })?;
    kernel::run(cx, "attention_join_saved", &[saved], &inputs(&[saved, part_saved]), saved.dtype, |_, v| {
        let [_, _, base, total] = joined(v[0], v[1]);
        vec![total.eq(0.0).select(base.like(f64::INFINITY), base + math::log(total))]
    })
}

/// The weights of two results whose sums have these logarithms, what these are relative to, and the sum of the weights. The
/// logarithm of nothing is infinite.
fn joined<'b>(x: Value<'b>, y: Value<'b>) -> [Value<'b>; 4] {
    let [x, y] = [x, y].map(|log| log.eq(f64::INFINITY).select(log.like(f64::NEG_INFINITY), log));
    let largest = maximum(x, y);
    let base = largest.eq(f64::NEG_INFINITY).select(x.like(0.0), largest);
    let [x, y] = [x, y].map(|log| math::exp(log - base));
    [x, y, base, x + y]
}
