//! The forward pass: the output and the log-sum-exp of each query, with a running maximum of each
//! row's scores.

use crate::attention::matrix_units::kernel::{WorkgroupContext, scaled};
use dml_kernel::{ScalarType, Subgroup, Value, math};
use std::f64::consts::LN_2;

/// How much a row's maximum has to grow, as an exponent of two, before lazy accumulators are
/// rescaled. Weights stay well within f16.
const LAZY: f64 = 8.0;

impl<'b> WorkgroupContext<'_, 'b> {
    /// `softmax(scores) @ values`, and the log-sum-exps.
    pub fn forward(&self) {
        let (w, p, b) = (self.worker, self.p, self.worker.b);
        let spec = w.spec;
        let key_head = self.head / p.shared_by;
        let query = self.query_number(self.head);
        let [keys, values] = p.right.each_ref().map(|m| m.plane(self.batch, key_head));
        let bias = self.bias(self.head);
        let left = w.left_operand(0, &p.left.plane(self.batch, self.head), p.depth);
        let [keys_stage, values_stage] = self.stages();
        let (products, sums) = (w.sums(spec.tile.columns), w.sums(spec.width));
        let start =
            |x: f64| (0..w.rows_of_invocation()).map(|_| b.var(b.float(ScalarType::F32, x))).collect::<Vec<_>>();
        // For each row: the running maximum of the scores, and this invocation's partial sum of
        // powers of two.
        let (largest, shares) = (start(f64::NEG_INFINITY), start(0.0));
        let scale = self.scale();
        let begin = |column0: Value<'b>| {
            keys_stage.fetch(&keys, column0, self.edge());
            keys_stage.store();
            values_stage.fetch(&values, column0, self.edge());
        };
        self.for_each_tile(begin, |column0, next, mask| {
            let scores = w.product(&left, &keys_stage, &products, spec.depth);
            values_stage.store();
            keys_stage.fetch(&keys, next, self.edge());
            let scores = w.scores(scores, column0, scale, bias.as_ref(), mask);
            let found = w.reduce_rows(w.fold_rows(&scores, Value::larger), Value::larger);
            let found = if spec.scale_in_exponential { found.into_iter().map(|x| x * scale).collect() } else { found };
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
            let weights = w.map_with_row(&scores, &bases, |score, base| self.weight(score, base));
            for (share, sum) in shares.iter().zip(w.fold_rows(&weights, |x, y| x + y)) {
                share.set(share.get() + sum);
            }
            let weights = scaled(weights, self.dropout_factors(column0, query));
            b.barrier();
            keys_stage.store();
            values_stage.fetch(&values, next, self.edge());
            w.accumulate(&weights, &values_stage, &sums);
            b.barrier();
        });
        let totals = w.reduce_rows(shares.iter().map(|share| share.get()).collect(), |x, y| x + y);
        if let Some(logs) = p.logs_out {
            let logs = self.of_head(logs, query);
            w.for_each_row(|i, row| {
                let log = largest[i].get() * LN_2 + math::log(totals[i]);
                let nothing = totals[i].eq(0.0);
                logs.store(row.cast(ScalarType::U64), nothing.select(log.like(f64::INFINITY), log));
            });
        }
        // A row whose total is 0 has no visible column: its output is 0.
        let factors: Vec<Value> =
            totals.iter().map(|total| total.eq(0.0).select(total.like(0.0), math::reciprocal(*total))).collect();
        let out = p.out.plane(self.batch, self.head);
        w.store(&sums, &out, p.width, spec.bounds_checks.width, |i, sum| {
            totals[i].eq(0.0).select(sum.like(0.0), sum * factors[i])
        });
    }
}

/// What the weights of a row with this maximum are relative to: 0 where every column was masked and
/// the maximum is -inf.
fn base_of(largest: Value<'_>) -> Value<'_> {
    largest.eq(f64::NEG_INFINITY).select(largest.like(0.0), largest)
}
