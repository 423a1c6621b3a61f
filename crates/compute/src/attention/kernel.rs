//! Attention in tiles: scores exist in registers and shared memory only (Dao et al.,
//! "FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022).
//!
//! A workgroup owns a tile of rows and walks the tiles of columns. Every step makes a tile of
//! scores, turns it into weights, and adds `weights @ x` to its sums. Forward, rows are queries,
//! columns are keys, and the softmax is kept up to date as columns come (Milakov and Gimelshein,
//! "Online normalizer calculation for softmax", 2018). Backward, weights come back from the saved
//! logarithms of sums, and each gradient is one launch with rows of its own: nothing is added by
//! two workgroups, so results are the same every time.

use crate::attention::dropout::{Dropout, DropoutParams};
use crate::attention::matrix::{Matrix, Plane};
use crate::attention::spec::{QUAD, Role, Spec};
use crate::attention::worker::{Patch, Worker, scaled};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, math};

/// One number for every query: forward writes it, the gradients read it.
struct Saved;

impl Parameter for Saved {
    type Type = (Role, DType);
    type Argument<'a> = &'a View;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (role, dtype): &(Role, DType)) -> Pointer<'b> {
        if *role == Role::Forward { Output::declare(b, name, dtype) } else { Input::declare(b, name, dtype) }
    }

    fn pass(t: &&View, (role, dtype): &(Role, DType), block: &mut ArgumentBlock) {
        if *role == Role::Forward { Output::pass(t, dtype, block) } else { Input::pass(t, dtype, block) }
    }
}

parameters! {
    pub Spec as s => Arguments, Parameters {
        /// The result.
        out: Matrix<Output> = (s.dtype, s.index),
        /// Of which a row with a row of `right` gives a score.
        left: Matrix<Input> = (s.dtype, s.index),
        /// See `left`.
        right: Matrix<Input> = (s.dtype, s.index),
        /// What weights multiply.
        x: Matrix<Input> = (s.dtype, s.index),
        /// The result's gradient and the values: as `left` and `right`, of the gradients of
        /// weights.
        gradients: Option<[Matrix<Input>; 2]> = s.role.needs_gradients().then_some((s.dtype, s.index)),
        /// What is added to scores, by row and column.
        bias: Option<Matrix<Input>> = s.bias.map(|dtype| (dtype, s.index)),
        /// Logarithms of sums, one a query.
        saved: Saved = (s.role, s.sums()),
        /// Inner products of the result and its gradient, one a query.
        deltas: Option<Input> = s.role.needs_gradients().then_some(s.sums()),
        /// What is dropped.
        dropout: Option<Dropout> = s.dropout.then_some(s.sums()),
        /// Elements of an inner product of queries and keys.
        depth: U32,
        /// Elements of an inner product of values and the result's gradient.
        depth2: U32,
        /// Factor of scores.
        scale: InDType = s.sums(),
        /// Rows that exist.
        rows: U32,
        /// Columns that exist.
        columns: U32,
        /// First and end of the columns that this launch walks.
        walked: [U32; 2],
        /// Columns of x.
        width: U32,
        /// Heads of queries.
        heads: U32,
        /// How many of them share a head of keys.
        shared_by: U32,
        /// Tiles of rows.
        tiles: U32,
        /// Slices of x.
        slices: U32,
        /// Workgroups in all.
        total: U32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn full_name(&self) -> String {
        format!("attention {:?}", self.role)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.threads, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let role = self.role;
        let Parameters { rows, columns, width, heads, shared_by, tiles, slices, total, .. } = p;

        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(total), || b.return_());
        let unit = group / slices;
        let slice = group - unit * slices;
        let plane = unit / tiles;
        let row0 = (unit - plane * tiles) * self.rows();
        let row_heads = if role.transposed() { heads / shared_by } else { heads };
        let batch = plane / row_heads;
        let row_head = plane - batch * row_heads;

        let worker = Worker::new(b, *self, [row0, rows, columns], p.walked, [slice * self.width, width]);
        let out = p.out.plane(batch, row_head);
        if role.transposed() {
            b.for_(row_head * shared_by, (row_head + 1) * shared_by, 1, |head| {
                let weights = Gradient { worker: &worker, operands: &p };
                weights.walk(batch, [head, row_head], batch * heads + head);
            });
            worker.store(&out, None);
            return;
        }
        let key_head = row_head / shared_by;
        let query = batch * heads + row_head;
        if role == Role::Query {
            Gradient { worker: &worker, operands: &p }.walk(batch, [row_head, key_head], query);
            worker.store(&out, None);
        } else {
            forward(&worker, &p, batch, [row_head, key_head], query, slice.eq(0), &out);
        }
    }
}

/// One number for every query of a head.
fn of_head<'b>(p: Pointer<'b>, worker: &Worker<'b>, query: Value<'b>) -> Pointer<'b> {
    let queries = if worker.spec.role.transposed() { worker.columns } else { worker.rows };
    p.offset(query.cast(ScalarType::U64) * queries.cast(ScalarType::U64))
}

impl<'b> Parameters<'b> {
    /// Scores of the tile of columns at `column0`: -inf where nothing is seen.
    fn scores(
        &self,
        worker: &Worker<'b>,
        planes: [&Plane<'b>; 2],
        bias: Option<&Plane<'b>>,
        column0: Value<'b>,
    ) -> Patch<'b> {
        let products = worker.product(planes[0], planes[1], column0, self.depth);
        worker.masked(&products, column0, self.scale, bias)
    }

    /// Factors of weights: 0 where dropped.
    fn kept(&self, worker: &Worker<'b>, column0: Value<'b>, query: Value<'b>) -> Option<Patch<'b>> {
        let DropoutParams { seed, offset, keep, boost } = self.dropout.as_ref()?;
        Some(worker.kept(column0, [seed.load(0), offset.load(0)], query, *keep, *boost))
    }
}

/// `softmax(scores) @ x`, and the logarithms of the sums.
fn forward<'b>(
    worker: &Worker<'b>,
    operands: &Parameters<'b>,
    batch: Value<'b>,
    [head, key_head]: [Value<'b>; 2],
    query: Value<'b>,
    first_slice: Value<'b>,
    out: &Plane<'b>,
) {
    let b = worker.b;
    let (left, right) = (operands.left.plane(batch, head), operands.right.plane(batch, key_head));
    let x = operands.x.plane(batch, key_head);
    let bias = operands.bias.as_ref().map(|m| m.plane(batch, head));
    let compute = worker.spec.dtype.compute();
    let start = |x: f64| (0..QUAD).map(|_| b.var(b.float(compute, x))).collect::<Vec<_>>();
    // Of each row: the largest score so far, and this invocation's share of the sum of exp(score -
    // largest).
    let (largest, shares) = (start(f64::NEG_INFINITY), start(0.0));
    let (first, end) = worker.visible();
    b.for_(first, end, worker.spec.columns(), |column0| {
        let scores = operands.scores(worker, [&left, &right], bias.as_ref(), column0);
        let own = scores.iter().map(|row| row.iter().copied().reduce(|x, y| x.max(y)).unwrap_or(row[0])).collect();
        let now = worker.join_rows(own, |x, y| x.max(y));
        let mut weights = Patch::new();
        for (i, row) in scores.iter().enumerate() {
            let before = largest[i].get();
            let now = before.max(now[i]);
            // A row that has seen nothing yet has no finite base.
            let base = now.eq(f64::NEG_INFINITY).select(now.like(0.0), now);
            let shrink = math::exp(before - base);
            let row: Vec<Value> = row.iter().map(|&s| math::exp(s - base)).collect();
            let sum = row.iter().copied().reduce(|x, y| x + y).unwrap_or(base);
            shares[i].set(shares[i].get() * shrink + sum);
            largest[i].set(now);
            worker.shrink(i, shrink);
            weights.push(row);
        }
        let weights = scaled(&weights, operands.kept(worker, column0, query).as_ref());
        worker.accumulate(&weights, &x, column0);
    });
    let totals = worker.join_rows(shares.iter().map(|s| s.get()).collect(), |x, y| x + y);
    let saved = of_head(operands.saved, worker, query);
    for (i, &total) in totals.iter().enumerate() {
        let row = worker.row(i as u32);
        let log = total.eq(0.0).select(total.like(f64::INFINITY), largest[i].get() + math::log(total));
        b.if_(first_slice & worker.across.eq(0) & row.lt(worker.rows), || saved.store(row.cast(ScalarType::U64), log));
    }
    worker.store(out, Some(&totals));
}

/// Gradients: weights come from the saved logarithms.
struct Gradient<'w, 'b> {
    worker: &'w Worker<'b>,
    operands: &'w Parameters<'b>,
}

impl<'b> Gradient<'_, 'b> {
    /// Adds what one head of queries gives.
    fn walk(&self, batch: Value<'b>, [head, key_head]: [Value<'b>; 2], query: Value<'b>) {
        let (worker, o) = (self.worker, self.operands);
        let [row_head, column_head] = if worker.spec.role.transposed() { [key_head, head] } else { [head, key_head] };
        let (left, right) = (o.left.plane(batch, row_head), o.right.plane(batch, column_head));
        let x = o.x.plane(batch, column_head);
        let bias = o.bias.as_ref().map(|m| m.plane(batch, head));
        let gradients = o.gradients.as_ref().map(|[l, r]| (l.plane(batch, row_head), r.plane(batch, column_head)));
        let saved = of_head(o.saved, worker, query);
        let deltas = o.deltas.map(|p| of_head(p, worker, query));
        let (first, end) = worker.visible();
        worker.b.for_(first, end, worker.spec.columns(), |column0| {
            let scores = o.scores(worker, [&left, &right], bias.as_ref(), column0);
            let weights = worker.with_queries(&scores, column0, saved, |s, log| math::exp(s - log));
            let kept = o.kept(worker, column0, query);
            let weights = match (&gradients, deltas) {
                (Some((left, right)), Some(deltas)) => {
                    let slopes = worker.product(left, right, column0, o.depth2);
                    let slopes = scaled(&slopes, kept.as_ref());
                    let slopes = worker.with_queries(&slopes, column0, deltas, |g, delta| (g - delta) * o.scale);
                    scaled(&weights, Some(&slopes))
                }
                _ => scaled(&weights, kept.as_ref()),
            };
            worker.accumulate(&weights, &x, column0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for role in [Role::Forward, Role::Query, Role::Key, Role::Value] {
            for (dtype, bias, index, threads, width) in [
                (DType::F32, None, ScalarType::U32, 128, 128),
                (DType::F32, None, ScalarType::U64, 64, 64),
                (DType::F16, Some(DType::F32), ScalarType::U64, 32, 32),
                (DType::F64, Some(DType::F64), ScalarType::U32, 64, 64),
                (DType::BF16, None, ScalarType::U32, 64, 64),
            ] {
                for flag in [false, true] {
                    let (quads, prefetch) = (flag, flag);
                    let spec =
                        Spec { role, dtype, bias, causal: flag, dropout: flag, index, threads, width, quads, prefetch };
                    crate::primitives::validate::accepted(&spec.build());
                }
            }
        }
    }
}
