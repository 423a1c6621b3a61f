//! The kernels: forward, and the gradients of queries, and of keys and values.
//!
//! The scores of a tile stay in the registers that the products leave them in: an invocation knows
//! which rows and columns it has, and shares a row's maximum with the lanes that have the others.
//! (The partition of rows among subgroups is that of Dao, "FlashAttention-2: faster attention with
//! better parallelism and work partitioning", 2023.)

use crate::attention::dropout::{Dropout, DropoutParams};
use crate::attention::matrix::{Matrix, Plane};
use crate::attention::units::products::Left;
use crate::attention::units::spec::{Role, Spec};
use crate::attention::units::stage::Stage;
use crate::attention::units::worker::{Mask, Matrices, Patch, Worker};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{F32, U32};
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Subgroup, Value, math};
use std::f64::consts::{LN_2, LOG2_E};

parameters! {
    /// Attention on matrix units.
    pub Spec as s => Arguments, Parameters {
        /// The result.
        out: Matrix<Output> = (s.dtype, s.index),
        /// The gradient of values, where `out` is that of keys.
        values_out: Option<Matrix<Output>> = (s.role == Role::KeyValue).then_some((s.dtype, s.index)),
        /// Of which a row with a row of `right[0]` gives a score.
        left: Matrix<Input> = (s.dtype, s.index),
        /// The same of gradients of weights, with `right[1]`.
        left2: Option<Matrix<Input>> = s.role.needs_slopes().then_some((s.dtype, s.index)),
        /// See the others; forward, `right[1]` is what weights multiply.
        right: [Matrix<Input>; 2] = (s.dtype, s.index),
        /// What is added to scores, by row and column.
        bias: Option<Matrix<Input>> = s.bias.map(|dtype| (dtype, s.index)),
        /// Logarithms of sums, one a query.
        logs_out: Option<Output> = (s.role == Role::Forward).then_some(DType::F32),
        /// The same, from forward.
        logs: Option<Input> = (s.role != Role::Forward).then_some(DType::F32),
        /// Inner products of the result and its gradient, one a query.
        deltas: Option<Input> = s.role.needs_slopes().then_some(DType::F32),
        /// What is dropped.
        dropout: Option<Dropout> = s.dropout.then_some(DType::F32),
        /// Elements of queries and keys.
        depth: U32,
        /// Elements of values.
        width: U32,
        /// Factor of scores.
        scale: F32,
        /// Rows that exist.
        rows: U32,
        /// Columns that exist, at least one.
        columns: U32,
        /// Heads of queries.
        heads: U32,
        /// How many of them share a head of keys.
        shared_by: U32,
        /// Tiles of rows.
        tiles: U32,
        /// Workgroups in all.
        total: U32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "matrix_attention"
    }

    fn full_name(&self) -> String {
        format!("matrix_attention {:?} {}", self.role, self.tile)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(p.total), || b.return_());
        let plane = group / p.tiles;
        let tile = group - plane * p.tiles;
        // Those with most columns go first.
        let tile = if self.causal && !self.role.transposed() { p.tiles - 1 - tile } else { tile };
        let row_heads = if self.role.transposed() { p.heads / p.shared_by } else { p.heads };
        let batch = plane / row_heads;
        let worker = Worker::new(b, *self, [tile * self.rows(), p.rows, p.columns]);
        let work = Work { worker: &worker, p: &p, batch, head: plane - batch * row_heads };
        match self.role {
            Role::Forward => work.forward(),
            Role::Query => work.gradient_of_queries(),
            Role::Key | Role::Value | Role::KeyValue => work.gradients_of_keys(),
        }
    }
}

/// A workgroup's task.
struct Work<'w, 'b> {
    worker: &'w Worker<'b>,
    p: &'w Parameters<'b>,
    batch: Value<'b>,
    /// Of the rows.
    head: Value<'b>,
}

/// What a head of queries gives to its part of a gradient.
struct Head<'b> {
    right: [Plane<'b>; 2],
    bias: Option<Plane<'b>>,
    /// Its number among all of the batch.
    query: Value<'b>,
}

impl<'b> Work<'_, 'b> {
    fn query_number(&self, head: Value<'b>) -> Value<'b> {
        self.batch * self.p.heads + head
    }

    /// One number for every query of a head.
    fn of_head(&self, p: Pointer<'b>, query: Value<'b>) -> Pointer<'b> {
        let w = self.worker;
        let queries = if w.spec.role.transposed() { w.columns } else { w.rows };
        p.offset(query.cast(ScalarType::U64) * queries.cast(ScalarType::U64))
    }

    fn bias(&self, head: Value<'b>) -> Option<Plane<'b>> {
        self.p.bias.as_ref().map(|bias| bias.plane(self.batch, head))
    }

    /// Where columns end, if that is within a tile.
    fn edge(&self) -> Option<Value<'b>> {
        self.worker.spec.ragged.columns.then_some(self.worker.columns)
    }

    fn stages(&self) -> [Stage<'b>; 2] {
        [self.worker.stage(0, self.p.depth), self.worker.stage(1, self.p.width)]
    }

    fn kept(&self, column0: Value<'b>, query: Value<'b>) -> Option<Patch<'b>> {
        let dropout: &DropoutParams = self.p.dropout.as_ref()?;
        Some(self.worker.kept(column0, query, dropout))
    }

    /// Runs `body` for each tile of columns that is seen, with the first column of it and of the
    /// next, and what is to be masked in it.
    fn walk(&self, start: impl FnOnce(Value<'b>), body: impl Fn(Value<'b>, Value<'b>, Mask)) {
        let (w, step) = (self.worker, self.worker.spec.tile.columns);
        let runs = w.visible();
        let [Some(&(first, ..)), Some(&(_, end, _))] = [runs.first(), runs.last()] else { return };
        let first_that_exists = first.lt(end).select(first, 0);
        start(first_that_exists);
        w.b.barrier();
        for (first, run_end, mask) in runs {
            w.b.for_(first, run_end, step, |column0| {
                // The last step fetches the first tile again: cheaper than a branch.
                let next = column0 + step;
                body(column0, next.lt(end).select(next, first_that_exists), mask);
            });
        }
    }

    /// The weight of a score, relative to 2^`base`.
    fn weight(&self, score: Value<'b>, base: Value<'b>) -> Value<'b> {
        let relative = if self.worker.spec.deferred { score.fma(self.scale(), -base) } else { score - base };
        relative.fast_exp2()
    }

    /// Factor of scores, which are in units of ln 2.
    fn scale(&self) -> Value<'b> {
        self.p.scale * LOG2_E
    }

    /// `softmax(scores) @ values`, and the logarithms of the sums.
    fn forward(&self) {
        let (w, p, b) = (self.worker, self.p, self.worker.b);
        let spec = w.spec;
        let key_head = self.head / p.shared_by;
        let query = self.query_number(self.head);
        let [keys, values] = p.right.each_ref().map(|m| m.plane(self.batch, key_head));
        let bias = self.bias(self.head);
        let left = w.left(0, &p.left.plane(self.batch, self.head), p.depth);
        let [keys_stage, values_stage] = self.stages();
        let (products, sums) = (w.sums(spec.tile.columns), w.sums(spec.width));
        let start = |x: f64| (0..w.own_rows()).map(|_| b.var(b.float(ScalarType::F32, x))).collect::<Vec<_>>();
        // Of each row: the largest score so far, and this invocation's share of the sum of powers
        // of two.
        let (largest, shares) = (start(f64::NEG_INFINITY), start(0.0));
        let scale = self.scale();
        let begin = |column0: Value<'b>| {
            keys_stage.fetch(&keys, column0, self.edge());
            keys_stage.store();
            values_stage.fetch(&values, column0, self.edge());
        };
        self.walk(begin, |column0, next, mask| {
            let scores = w.product(&left, &keys_stage.lines, &products, spec.depth);
            values_stage.store();
            keys_stage.fetch(&keys, next, self.edge());
            let scores = w.scores(scores, column0, scale, bias.as_ref(), mask);
            let found = w.join_rows(w.fold_rows(&scores, Value::larger), Value::larger);
            let found = if spec.deferred { found.into_iter().map(|x| x * scale).collect() } else { found };
            let rebase = || {
                let mut shrinks = Vec::new();
                for ((largest, share), &found) in largest.iter().zip(&shares).zip(&found) {
                    let before = largest.get();
                    let now = before.larger(found);
                    let shrink = (before - base_of(now)).fast_exp2();
                    share.set(share.get() * shrink);
                    shrinks.push(shrink);
                    largest.set(now);
                }
                w.scale_rows(&sums, &shrinks);
            };
            if spec.tile.lazy {
                let grown = largest.iter().zip(&found).map(|(largest, &found)| found.gt(largest.get() + LAZY));
                let grown = grown.reduce(|x, y| x | y).unwrap_or_else(|| b.bool(true));
                b.if_(grown.cast(ScalarType::U32).subgroup(Subgroup::Max).ne(0), rebase);
            } else {
                rebase();
            }
            let bases: Vec<Value> = largest.iter().map(|largest| base_of(largest.get())).collect();
            let weights = w.by_row(&scores, &bases, |score, base| self.weight(score, base));
            for (share, sum) in shares.iter().zip(w.fold_rows(&weights, |x, y| x + y)) {
                share.set(share.get() + sum);
            }
            let weights = scaled(weights, self.kept(column0, query));
            b.barrier();
            keys_stage.store();
            values_stage.fetch(&values, next, self.edge());
            w.accumulate(&weights, &values_stage.lines, &sums);
            b.barrier();
        });
        let totals = w.join_rows(shares.iter().map(|share| share.get()).collect(), |x, y| x + y);
        if let Some(logs) = p.logs_out {
            let logs = self.of_head(logs, query);
            w.each_row(|i, row| {
                let log = largest[i].get() * LN_2 + math::log(totals[i]);
                let nothing = totals[i].eq(0.0);
                logs.store(row.cast(ScalarType::U64), nothing.select(log.like(f64::INFINITY), log));
            });
        }
        // A row whose total is 0 has seen nothing: its sums are 0.
        let factors: Vec<Value> =
            totals.iter().map(|total| total.eq(0.0).select(total.like(0.0), math::reciprocal(*total))).collect();
        let out = p.out.plane(self.batch, self.head);
        w.store(&sums, &out, p.width, spec.ragged.width, |i, sum| {
            totals[i].eq(0.0).select(sum.like(0.0), sum * factors[i])
        });
    }

    fn gradient_of_queries(&self) {
        let (w, p) = (self.worker, self.p);
        let key_head = self.head / p.shared_by;
        let head = Head {
            right: p.right.each_ref().map(|m| m.plane(self.batch, key_head)),
            bias: self.bias(self.head),
            query: self.query_number(self.head),
        };
        let (lefts, stages) = (self.lefts(), self.stages());
        let sums = w.sums(w.spec.depth);
        self.gradients(&head, &lefts, &stages, [Some(&sums), None]);
        let out = p.out.plane(self.batch, self.head);
        w.store(&sums, &out, p.depth, w.spec.ragged.depth, |_, sum| sum * p.scale);
    }

    fn gradients_of_keys(&self) {
        let (w, p) = (self.worker, self.p);
        let (spec, role) = (w.spec, w.spec.role);
        let (lefts, stages) = (self.lefts(), self.stages());
        let sums = role.needs_slopes().then(|| w.sums(spec.depth));
        let values_sums = role.gives_values().then(|| w.sums(spec.width));
        w.b.for_(self.head * p.shared_by, (self.head + 1) * p.shared_by, 1u32, |head| {
            let head = Head {
                right: p.right.each_ref().map(|m| m.plane(self.batch, head)),
                bias: self.bias(head),
                query: self.query_number(head),
            };
            self.gradients(&head, &lefts, &stages, [sums.as_ref(), values_sums.as_ref()]);
        });
        if let Some(sums) = &sums {
            let out = p.out.plane(self.batch, self.head);
            w.store(sums, &out, p.depth, spec.ragged.depth, |_, sum| sum * p.scale);
        }
        if let Some(sums) = &values_sums {
            let out = p.values_out.as_ref().unwrap_or(&p.out).plane(self.batch, self.head);
            w.store(sums, &out, p.width, spec.ragged.width, |_, sum| sum);
        }
    }

    /// The rows' matrices: that of scores, and that of weights' gradients.
    fn lefts(&self) -> (Left<'b>, Option<Left<'b>>) {
        let (w, p) = (self.worker, self.p);
        let left = w.left(0, &p.left.plane(self.batch, self.head), p.depth);
        (left, p.left2.as_ref().map(|m| w.left(1, &m.plane(self.batch, self.head), p.width)))
    }

    /// Adds what one head of queries gives: to the gradient of queries or keys, which lacks the
    /// scores' factor, and to that of values.
    fn gradients(
        &self,
        head: &Head<'b>,
        (left, left2): &(Left<'b>, Option<Left<'b>>),
        stages: &[Stage<'b>; 2],
        [sums, values_sums]: [Option<&Matrices<'b>>; 2],
    ) {
        let (w, p, b) = (self.worker, self.p, self.worker.b);
        let (spec, query) = (w.spec, head.query);
        let products = w.sums(spec.tile.columns);
        let slopes_products = left2.is_some().then(|| w.sums(spec.tile.columns));
        let scale = self.scale();
        let logs = p.logs.map(|logs| self.of_head(logs, query));
        let deltas = p.deltas.map(|deltas| self.of_head(deltas, query));
        let of_queries = |column0: Value<'b>| -> [Vec<Value<'b>>; 2] {
            let numbers = |numbers: Option<Pointer<'b>>| {
                let load = |at: Value<'b>| numbers.map_or(at, |numbers| numbers.load(at));
                if numbers.is_some() { w.of_queries(column0, load) } else { Vec::new() }
            };
            [numbers(logs).into_iter().map(|log| log * LOG2_E).collect(), numbers(deltas)]
        };
        // The rows' own, where these are queries.
        let own = (!spec.role.transposed()).then(|| of_queries(b.u32(0)));
        let fetch = |column0: Value<'b>| {
            for (stage, plane) in stages.iter().zip(&head.right) {
                stage.fetch(plane, column0, self.edge());
            }
        };
        let store = || stages.iter().for_each(Stage::store);
        let begin = |column0: Value<'b>| {
            fetch(column0);
            store();
        };
        self.walk(begin, |column0, next, mask| {
            let [logs, deltas] = own.clone().unwrap_or_else(|| of_queries(column0));
            fetch(next);
            let scores = w.product(left, &stages[0].lines, &products, spec.depth);
            let scores = w.scores(scores, column0, scale, head.bias.as_ref(), mask);
            let weights = w.by_query(&scores, &logs, |score, log| self.weight(score, log));
            let kept = self.kept(column0, query);
            let slopes = left2.as_ref().zip(slopes_products.as_ref()).map(|(left2, products)| {
                let slopes = w.product(left2, &stages[1].lines, products, spec.width);
                w.by_query(&scaled(slopes, kept.clone()), &deltas, |slope, delta| slope - delta)
            });
            if let Some(sums) = values_sums {
                w.accumulate(&scaled(weights.clone(), kept), &stages[1].lines, sums);
            }
            if let Some(sums) = sums {
                w.accumulate(&scaled(weights, slopes), &stages[0].lines, sums);
            }
            b.barrier();
            store();
            b.barrier();
        });
    }
}

/// How much a maximum grows before lazy sums follow, in powers of two: weights stay well within
/// f16.
const LAZY: f64 = 8.0;

/// What weights of a row with this maximum are relative to: a row that has seen nothing yet has no
/// finite one.
fn base_of(largest: Value<'_>) -> Value<'_> {
    largest.eq(f64::NEG_INFINITY).select(largest.like(0.0), largest)
}

/// Element by element; without factors the patch itself.
fn scaled<'b>(patch: Patch<'b>, factors: Option<Patch<'b>>) -> Patch<'b> {
    let Some(factors) = factors else { return patch };
    patch.into_iter().zip(factors).map(|(x, y)| x * y).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::units::parts::Parts;
    use crate::attention::units::spec::Ragged;
    use crate::attention::units::tile::Tile;
    use crate::matmul::matrix_tile::Units;
    use dml_kernel::ComponentMap;

    #[test]
    fn kernels_are_valid() {
        let emulated = Parts::emulated(Units { shape: [16; 3], lanes: 32, emulated: true, small: true, bytes: 2 });
        let column = ComponentMap::found([16, 16], 32, |lane, i| [2 * i + lane / 16, lane % 16]);
        let ways = [
            emulated,
            Parts { emulated: false, ..emulated },
            Parts { emulated: false, left: None, ..emulated },
            Parts { emulated: false, sums: column.expect("it is a map"), ..emulated },
        ];
        for role in [Role::Forward, Role::Query, Role::Key, Role::Value, Role::KeyValue] {
            for (i, parts) in ways.into_iter().enumerate() {
                for (dtype, bias, index, resident) in
                    [(DType::F16, None, ScalarType::U32, true), (DType::F16, Some(DType::F32), ScalarType::U64, false)]
                {
                    let flag = resident == (i % 2 == 0);
                    let spec = Spec {
                        role,
                        dtype,
                        bias,
                        causal: flag,
                        deferred: bias.is_none() && flag,
                        dropout: !flag,
                        index,
                        tile: Tile { subgroups: 2, rows: 16, columns: 32, resident, lazy: flag },
                        parts,
                        depth: 32,
                        width: 48,
                        ragged: Ragged { columns: flag, depth: flag, width: !flag },
                        pairs: flag,
                        aligned: [[flag, !flag], [true, flag]],
                    };
                    let kernel = spec.build();
                    // Debian 12's validator does not know matrices.
                    if parts.emulated {
                        crate::primitives::validate::accepted(&kernel);
                    } else {
                        assert!(kernel.emit().is_ok_and(|module| module.needs.matrix), "{spec:?}");
                    }
                }
            }
        }
    }
}
