//! The gradients of queries, and of keys and values.

use crate::attention::matrix::Plane;
use crate::attention::matrix_units::kernel::{WorkgroupContext, scaled};
use crate::attention::matrix_units::products::LeftOperand;
use crate::attention::matrix_units::stage::Stage;
use crate::attention::matrix_units::worker::Matrices;
use dml_kernel::{Pointer, Value};
use std::f64::consts::LOG2_E;

/// Operands of the contribution of one query head to a gradient.
struct Head<'b> {
    right: [Plane<'b>; 2],
    bias: Option<Plane<'b>>,
    /// Index of the query head among all heads of the batch.
    query: Value<'b>,
}

impl<'b> WorkgroupContext<'_, 'b> {
    pub fn gradient_of_queries(&self) {
        let (w, p) = (self.worker, self.p);
        let key_head = self.head / p.shared_by;
        let head = Head {
            right: p.right.each_ref().map(|m| m.plane(self.batch, key_head)),
            bias: self.bias(self.head),
            query: self.query_number(self.head),
        };
        let (left_operands, stages) = (self.left_operands(), self.stages());
        let sums = w.sums(w.spec.depth);
        self.gradients(&head, &left_operands, &stages, [Some(&sums), None]);
        let out = p.out.plane(self.batch, self.head);
        w.store(&sums, &out, p.depth, w.spec.bounds_checks.depth, |_, sum| sum * p.scale);
    }

    pub fn gradients_of_keys(&self) {
        let (w, p) = (self.worker, self.p);
        let (spec, role) = (w.spec, w.spec.role);
        let (left_operands, stages) = (self.left_operands(), self.stages());
        let sums = role.needs_score_gradients().then(|| w.sums(spec.depth));
        let values_sums = role.computes_value_gradients().then(|| w.sums(spec.width));
        w.b.for_(self.head * p.shared_by, (self.head + 1) * p.shared_by, 1u32, |head| {
            let head = Head {
                right: p.right.each_ref().map(|m| m.plane(self.batch, head)),
                bias: self.bias(head),
                query: self.query_number(head),
            };
            self.gradients(&head, &left_operands, &stages, [sums.as_ref(), values_sums.as_ref()]);
        });
        if let Some(sums) = &sums {
            let out = p.out.plane(self.batch, self.head);
            w.store(sums, &out, p.depth, spec.bounds_checks.depth, |_, sum| sum * p.scale);
        }
        if let Some(sums) = &values_sums {
            let out = p.values_out.as_ref().unwrap_or(&p.out).plane(self.batch, self.head);
            w.store(sums, &out, p.width, spec.bounds_checks.width, |_, sum| sum);
        }
    }

    /// The rows' matrices as left operands: for scores, and for the weights' gradients.
    fn left_operands(&self) -> (LeftOperand<'b>, Option<LeftOperand<'b>>) {
        let (w, p) = (self.worker, self.p);
        let left = w.left_operand(0, &p.left.plane(self.batch, self.head), p.depth);
        (left, p.left2.as_ref().map(|m| w.left_operand(1, &m.plane(self.batch, self.head), p.width)))
    }

    /// Adds the contribution of one query head: to the gradient of queries or keys, which lacks the
    /// scores' factor, and to the gradient of values.
    fn gradients(
        &self,
        head: &Head<'b>,
        (left, left2): &(LeftOperand<'b>, Option<LeftOperand<'b>>),
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
        // The log-sum-exps and inner products of the rows, where rows are queries.
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
        self.for_each_tile(begin, |column0, next, mask| {
            let [logs, deltas] = own.clone().unwrap_or_else(|| of_queries(column0));
            fetch(next);
            let scores = w.product(left, &stages[0], &products, spec.depth);
            let scores = w.scores(scores, column0, scale, head.bias.as_ref(), mask);
            let weights = w.map_with_query(&scores, &logs, |score, log| self.weight(score, log));
            let kept = self.dropout_factors(column0, query);
            let slopes = left2.as_ref().zip(slopes_products.as_ref()).map(|(left2, products)| {
                let slopes = w.product(left2, &stages[1], products, spec.width);
                w.map_with_query(&scaled(slopes, kept.clone()), &deltas, |slope, delta| slope - delta)
            });
            if let Some(sums) = values_sums {
                w.accumulate(&scaled(weights.clone(), kept), &stages[1], sums);
            }
            if let Some(sums) = sums {
                w.accumulate(&scaled(weights, slopes), &stages[0], sums);
            }
            b.barrier();
            store();
            b.barrier();
        });
    }
}
