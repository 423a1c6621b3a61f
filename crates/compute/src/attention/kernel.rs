//! Attention in tiles: scores exist in registers and shared memory only (Dao et al.,
//! "FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022).
//!
//! A workgroup owns a tile of rows and iterates over the tiles of columns. Every step computes a
//! tile of scores, converts it into weights, and accumulates `weights @ x`. In the forward pass
//! rows are queries, columns are keys, and the softmax is updated online as columns arrive (Milakov
//! and Gimelshein, "Online normalizer calculation for softmax", 2018). In the backward pass the
//! weights are recomputed from the saved log-sum-exps, and each gradient is one launch in which
//! every workgroup owns its rows: no two workgroups add to the same element, so results are
//! deterministic.

use crate::attention::dropout::Dropout;
use crate::attention::matrix::{Matrix, Plane};
use crate::attention::spec::{PATCH, Role, Spec};
use crate::attention::worker::{Drawn, Patch, Worker, scaled};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, math};

/// Parameter: the log-sum-exp of each query. The forward pass writes it, the gradients read it.
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
        /// The rows' matrix: the score of a row and a column is the inner product of a row of
        /// `left` and a row of `right`.
        left: Matrix<Input> = (s.dtype, s.index),
        /// The columns' matrix: see `left`.
        right: Matrix<Input> = (s.dtype, s.index),
        /// The matrix that weights multiply.
        x: Matrix<Input> = (s.dtype, s.index),
        /// The output's gradient and the values, for the gradients of the weights. Their inner
        /// products give the weights' gradients, as those of `left` and `right` give the scores.
        gradients: Option<[Matrix<Input>; 2]> = s.role.needs_gradients().then_some((s.dtype, s.index)),
        /// The bias that is added to scores, by row and column.
        bias: Option<Matrix<Input>> = s.bias.map(|dtype| (dtype, s.index)),
        /// Log-sum-exp of each query.
        saved: Saved = (s.role, s.sums()),
        /// Inner product of the output and its gradient, for each query.
        deltas: Option<Input> = s.role.needs_gradients().then_some(s.sums()),
        /// Dropout of weights.
        dropout: Option<Dropout> = s.dropout.then_some(s.sums()),
        /// Length of the inner product of a query and a key.
        depth: U32,
        /// Length of the inner product of a value and the output's gradient.
        depth2: U32,
        /// Factor of scores.
        scale: InDType = s.sums(),
        /// Number of rows.
        rows: U32,
        /// Number of columns.
        columns: U32,
        /// The range of columns that this launch iterates over: first, and end.
        column_range: [U32; 2],
        /// Number of columns of `x`.
        width: U32,
        /// Number of query heads.
        heads: U32,
        /// Query heads per key head.
        shared_by: U32,
        /// Number of tiles of rows.
        tiles: U32,
        /// Number of slices of `x` along its columns.
        slices: U32,
        /// Number of workgroups.
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

        let worker = Worker::new(b, *self, [row0, rows, columns], p.column_range, [slice * self.width, width]);
        let out = worker.hoisted(|| p.out.plane(batch, row_head));
        if role.transposed() {
            b.for_(row_head * shared_by, (row_head + 1) * shared_by, 1, |head| {
                let weights = Gradient { worker: &worker, operands: &p };
                weights.add_head(batch, [head, row_head], batch * heads + head);
            });
            worker.afterwards(|| worker.store(&out(), None));
            return;
        }
        let key_head = row_head / shared_by;
        let query = batch * heads + row_head;
        if role == Role::Query {
            Gradient { worker: &worker, operands: &p }.add_head(batch, [row_head, key_head], query);
            worker.afterwards(|| worker.store(&out(), None));
        } else {
            forward(&worker, &p, batch, [row_head, key_head], query, slice.eq(0), out);
        }
    }
}

/// The part of `p`, an array of one number a query, that belongs to one head.
fn of_head<'b>(p: Pointer<'b>, worker: &Worker<'b>, query: Value<'b>) -> Pointer<'b> {
    let queries = if worker.spec.role.transposed() { worker.columns } else { worker.rows };
    p.offset(query.cast(ScalarType::U64) * queries.cast(ScalarType::U64))
}

impl<'b> Parameters<'b> {
    /// Scores of the tile of columns from `column0` on; -inf where the row does not attend to the
    /// column.
    fn scores(
        &self,
        worker: &Worker<'b>,
        planes: [&Plane<'b>; 2],
        bias: impl FnOnce() -> Option<Plane<'b>>,
        column0: Value<'b>,
    ) -> Patch<'b> {
        let products = worker.product(planes[0], planes[1], column0, self.depth);
        worker.masked(&products, column0, self.scale, bias().as_ref())
    }

    /// Dropout factors of the weights: 0 where a weight is dropped. They are drawn where they are
    /// used, or where registers are few at once, while there are no scores yet.
    fn dropout_factors(
        &self,
        worker: &Worker<'b>,
        column0: Value<'b>,
        query: Value<'b>,
    ) -> impl Fn() -> Option<Patch<'b>> {
        let draw = move || Some(worker.drawn(column0, self.dropout.as_ref()?, query));
        let early = worker.spec.few_registers.then(draw).flatten();
        move || {
            let late = if early.is_none() { draw() } else { None };
            let drawn = early.as_ref().or(late.as_ref())?;
            Some(worker.dropout_factors(drawn, self.dropout.as_ref()?.boost))
        }
    }

    /// Applies dropout to a weight, by its row and column in the patch. The decisions are drawn at
    /// once, as bits.
    fn dropout_by_place(
        &self,
        worker: &Worker<'b>,
        column0: Value<'b>,
        query: Value<'b>,
    ) -> impl Fn(Value<'b>, [Value<'b>; 2]) -> Value<'b> {
        let drawn = self.dropout.as_ref().map(|dropout| worker.drawn(column0, dropout, query));
        move |weight, place| match (&drawn, &self.dropout) {
            (Some(Drawn::Bits(drawn)), Some(dropout)) => weight * worker.dropout_factor(*drawn, place, dropout.boost),
            _ => weight,
        }
    }
}

/// `softmax(scores) @ x`, and the log-sum-exp of each row.
fn forward<'b>(
    worker: &Worker<'b>,
    operands: &Parameters<'b>,
    batch: Value<'b>,
    [head, key_head]: [Value<'b>; 2],
    query: Value<'b>,
    first_slice: Value<'b>,
    out: impl Fn() -> Plane<'b>,
) {
    let b = worker.b;
    let left = worker.hoisted(|| operands.left.plane(batch, head));
    let right = worker.hoisted(|| operands.right.plane(batch, key_head));
    let x = worker.hoisted(|| operands.x.plane(batch, key_head));
    let bias = worker.hoisted(|| operands.bias.as_ref().map(|m| m.plane(batch, head)));
    let compute = worker.spec.dtype.compute();
    let start = |x: f64| (0..PATCH).map(|_| b.var(b.float(compute, x))).collect::<Vec<_>>();
    let largest_of = |scores: &Patch<'b>| {
        scores.iter().map(|row| row.iter().copied().reduce(|x, y| x.max(y)).unwrap_or(row[0])).collect::<Vec<_>>()
    };
    let saved = || of_head(operands.saved, worker, query);
    let save = |saved: Pointer<'b>, row: Value<'b>, total: Value<'b>, largest: &dyn Fn() -> Value<'b>| {
        let log = total.eq(0.0).select(total.like(f64::INFINITY), largest() + math::log(total));
        b.if_(first_slice & worker.patch_column.eq(0) & row.lt(worker.rows), || {
            saved.store(row.cast(ScalarType::U64), log)
        });
    };
    if worker.spec.parks_sums {
        // The same, with all numbers of rows in shared memory, and rows one after the other.
        let load = |(memory, at): (Shared<'b>, Value<'b>)| memory.load(at);
        let set = |(memory, at): (Shared<'b>, Value<'b>), x| memory.store(at, x);
        let largest = |i| worker.waiting(0, i);
        let share = |i| worker.waiting(1, i);
        let base = |i| worker.waiting(2, i);
        let sum = |i| worker.waiting(3, i);
        worker.repeat(PATCH, 1, |i| {
            set(largest(i), b.float(compute, f64::NEG_INFINITY));
            set(share(i), b.float(compute, 0.0));
        });
        let (first, end) = worker.visible();
        b.for_(first, end, worker.spec.columns(), |column0| {
            let dropped = operands.dropout_by_place(worker, column0, query);
            let scores = operands.scores(worker, [&left(), &right()], &bias, column0);
            worker.store_weights(&scores);
            worker.put_numbers(&largest_of(&scores));
            worker.each_row(
                |x, y| x.max(y),
                |i, now| {
                    let before = load(largest(i));
                    let now = before.max(now);
                    let from = now.eq(f64::NEG_INFINITY).select(now.like(0.0), now);
                    let shrink = worker.exp(before - from);
                    set(share(i), load(share(i)) * shrink);
                    set(largest(i), now);
                    set(base(i), from);
                    set(sum(i), from.like(0.0));
                    worker.shrink_parked(i, shrink);
                },
            );
            worker.replace_weights(|score, [i, j]| {
                let weight = worker.exp(score - load(base(i)));
                set(sum(i), load(sum(i)) + weight);
                dropped(weight, [i, j])
            });
            worker.repeat(PATCH, 1, |i| set(share(i), load(share(i)) + load(sum(i))));
            worker.accumulate_stored(&x(), column0);
        });
        worker.put_numbers(&(0..PATCH).map(|i| load(share(b.u32(i)))).collect::<Vec<_>>());
        worker.each_row(
            |x, y| x + y,
            |i, total| {
                save(saved(), worker.row(0) + i, total, &|| load(largest(i)));
                worker.store_parked(&out(), i, Some(total));
            },
        );
        return;
    }
    // For each row: the running maximum of the scores, and this invocation's partial sum of
    // exp(score - maximum).
    let (largest, shares) = (start(f64::NEG_INFINITY), start(0.0));
    let (first, end) = worker.visible();
    b.for_(first, end, worker.spec.columns(), |column0| {
        let factors = operands.dropout_factors(worker, column0, query);
        let scores = operands.scores(worker, [&left(), &right()], &bias, column0);
        let now = worker.reduce_rows(largest_of(&scores), |x, y| x.max(y));
        let mut weights = Patch::new();
        for (i, row) in scores.iter().enumerate() {
            let before = largest[i].get();
            let now = before.max(now[i]);
            // The maximum is -inf as long as every column is masked, and not a usable base.
            let base = now.eq(f64::NEG_INFINITY).select(now.like(0.0), now);
            let shrink = worker.exp(before - base);
            let row: Vec<Value> = row.iter().map(|&s| worker.exp(s - base)).collect();
            let sum = row.iter().copied().reduce(|x, y| x + y).unwrap_or(base);
            shares[i].set(shares[i].get() * shrink + sum);
            largest[i].set(now);
            worker.shrink(i, shrink);
            weights.push(row);
        }
        let weights = scaled(&weights, factors().as_ref());
        worker.accumulate(&weights, &x(), column0);
    });
    let totals = worker.reduce_rows(shares.iter().map(|s| s.get()).collect(), |x, y| x + y);
    worker.afterwards(|| {
        let saved = saved();
        for (i, &total) in totals.iter().enumerate() {
            save(saved, worker.row(i as u32), total, &|| largest[i].get());
        }
        worker.store(&out(), Some(&totals));
    });
}

/// The gradients: weights are recomputed from the saved log-sum-exps.
struct Gradient<'w, 'b> {
    worker: &'w Worker<'b>,
    operands: &'w Parameters<'b>,
}

impl<'b> Gradient<'_, 'b> {
    /// Adds the contribution of one query head.
    fn add_head(&self, batch: Value<'b>, [head, key_head]: [Value<'b>; 2], query: Value<'b>) {
        let (worker, o) = (self.worker, self.operands);
        let [row_head, column_head] = if worker.spec.role.transposed() { [key_head, head] } else { [head, key_head] };
        let left = worker.hoisted(|| o.left.plane(batch, row_head));
        let right = worker.hoisted(|| o.right.plane(batch, column_head));
        let x = worker.hoisted(|| o.x.plane(batch, column_head));
        let bias = worker.hoisted(|| o.bias.as_ref().map(|m| m.plane(batch, head)));
        let gradients = worker
            .hoisted(|| o.gradients.as_ref().map(|[l, r]| (l.plane(batch, row_head), r.plane(batch, column_head))));
        let saved = worker.hoisted(|| of_head(o.saved, worker, query));
        let deltas = worker.hoisted(|| o.deltas.map(|p| of_head(p, worker, query)));
        let (first, end) = worker.visible();
        worker.b.for_(first, end, worker.spec.columns(), |column0| {
            if worker.spec.parks_sums {
                let dropped = o.dropout_by_place(worker, column0, query);
                worker.store_weights(&o.scores(worker, [&left(), &right()], &bias, column0));
                let needs_gradients = worker.spec.role.needs_gradients();
                worker.replace_weights(|score, place| {
                    let weight = worker.exp(score - worker.of_query(column0, place, saved()));
                    if needs_gradients { weight } else { dropped(weight, place) }
                });
                if let (Some((left, right)), Some(deltas)) = (gradients(), deltas()) {
                    let slopes = worker.product(&left, &right, column0, o.depth2);
                    for j in 0..PATCH {
                        worker.replace_column(worker.b.u32(j), |weights| {
                            let changed = weights.iter().zip(&slopes).zip(0..).map(|((&weight, row), i)| {
                                let place = [i, j].map(|k| worker.b.u32(k));
                                let delta = worker.of_query(column0, place, deltas);
                                weight * ((dropped(row[j as usize], place) - delta) * o.scale)
                            });
                            changed.collect()
                        });
                    }
                }
                worker.accumulate_stored(&x(), column0);
                return;
            }
            let factors = o.dropout_factors(worker, column0, query);
            let scores = o.scores(worker, [&left(), &right()], &bias, column0);
            let weights = worker.with_queries(&scores, column0, saved(), |s, log| worker.exp(s - log));
            let weights = match (gradients(), deltas()) {
                (Some((left, right)), Some(deltas)) => {
                    let waiting = if worker.spec.few_registers {
                        worker.store_weights(&weights);
                        None
                    } else {
                        Some((weights, factors()))
                    };
                    let slopes = worker.product(&left, &right, column0, o.depth2);
                    let (weights, factors) = waiting.map_or_else(|| (None, factors()), |(w, f)| (Some(w), f));
                    let slopes = scaled(&slopes, factors.as_ref());
                    let slopes = worker.with_queries(&slopes, column0, deltas, |g, delta| (g - delta) * o.scale);
                    let Some(weights) = weights else {
                        worker.scale_stored(&slopes);
                        worker.accumulate_stored(&x(), column0);
                        return;
                    };
                    scaled(&weights, Some(&slopes))
                }
                _ => scaled(&weights, factors().as_ref()),
            };
            worker.accumulate(&weights, &x(), column0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::spec::DEPTH;

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
                for (flag, few_registers, parks_sums) in [
                    (false, false, false),
                    (true, false, false),
                    (true, true, false),
                    (false, true, true),
                    (true, true, true),
                ] {
                    let (vector_loads, prefetch) = (flag, flag && !few_registers);
                    let spec = Spec {
                        role,
                        dtype,
                        bias,
                        causal: flag,
                        dropout: flag,
                        index,
                        threads,
                        width,
                        vector_loads,
                        prefetch,
                        depth: if few_registers && threads <= 64 { DEPTH / 2 } else { DEPTH },
                        few_registers,
                        parks_sums,
                    };
                    crate::primitives::validate::accepted(&spec.build());
                }
            }
        }
    }
}
