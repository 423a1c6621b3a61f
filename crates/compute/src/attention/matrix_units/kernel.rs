//! The kernels: forward, and the gradients of queries, and of keys and values.
//!
//! The scores of a tile stay in the registers that the matrix products leave them in: an invocation
//! knows the rows and columns of its components, and reduces a row's maximum with the lanes that
//! hold the row's other components. (Rows are partitioned among subgroups as in Dao,
//! "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023.)

use crate::attention::dropout::{Dropout, DropoutParams};
use crate::attention::matrix::{Matrix, Plane};
use crate::attention::matrix_units::spec::{Role, Spec};
use crate::attention::matrix_units::stage::Stage;
use crate::attention::matrix_units::worker::{Mask, Patch, Worker};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{F32, U32};
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use std::f64::consts::LOG2_E;

parameters! {
    /// Attention on matrix units.
    pub Spec as s => Arguments, Parameters {
        /// The result.
        out: Matrix<Output> = (s.dtype, s.index),
        /// The gradient of the values, where `out` is the gradient of the keys.
        values_out: Option<Matrix<Output>> = (s.role == Role::KeyValue).then_some((s.dtype, s.index)),
        /// The rows' matrix: the score of a row and a column is the inner product of a row of
        /// `left` and a row of `right[0]`.
        left: Matrix<Input> = (s.dtype, s.index),
        /// The rows' matrix for the gradients of weights, which are inner products with rows of
        /// `right[1]`.
        left2: Option<Matrix<Input>> = s.role.needs_score_gradients().then_some((s.dtype, s.index)),
        /// The columns' matrices: see `left` and `left2`. Forward, `right[1]` is the values, which
        /// weights multiply.
        right: [Matrix<Input>; 2] = (s.dtype, s.index),
        /// The bias that is added to scores, by row and column.
        bias: Option<Matrix<Input>> = s.bias.map(|dtype| (dtype, s.index)),
        /// The log-sum-exp of each query, written by the forward pass.
        logs_out: Option<Output> = (s.role == Role::Forward).then_some(DType::F32),
        /// The log-sum-exp of each query, read by the gradients.
        logs: Option<Input> = (s.role != Role::Forward).then_some(DType::F32),
        /// Inner product of the output and its gradient, for each query.
        deltas: Option<Input> = s.role.needs_score_gradients().then_some(DType::F32),
        /// Dropout of weights.
        dropout: Option<Dropout> = s.dropout.then_some(DType::F32),
        /// Elements of a query or a key.
        depth: U32,
        /// Elements of a value.
        width: U32,
        /// Factor of scores.
        scale: F32,
        /// Number of rows.
        rows: U32,
        /// Number of columns, at least one.
        columns: U32,
        /// Number of query heads.
        heads: U32,
        /// Query heads per key head.
        shared_by: U32,
        /// Number of tiles of rows.
        tiles: U32,
        /// Number of workgroups.
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
        // Tiles with the most columns start first.
        let tile = if self.causal && !self.role.transposed() { p.tiles - 1 - tile } else { tile };
        let row_heads = if self.role.transposed() { p.heads / p.shared_by } else { p.heads };
        let batch = plane / row_heads;
        let worker = Worker::new(b, *self, [tile * self.rows(), p.rows, p.columns]);
        let work = WorkgroupContext { worker: &worker, p: &p, batch, head: plane - batch * row_heads };
        match self.role {
            Role::Forward => work.forward(),
            Role::Query => work.gradient_of_queries(),
            Role::Key | Role::Value | Role::KeyValue => work.gradients_of_keys(),
        }
    }
}

/// A workgroup's position: its worker, batch element and head.
pub struct WorkgroupContext<'w, 'b> {
    pub worker: &'w Worker<'b>,
    pub p: &'w Parameters<'b>,
    pub batch: Value<'b>,
    /// Head of the rows' matrices.
    pub head: Value<'b>,
}

impl<'b> WorkgroupContext<'_, 'b> {
    pub fn query_number(&self, head: Value<'b>) -> Value<'b> {
        self.batch * self.p.heads + head
    }

    /// The part of `p`, an array of one number a query, that belongs to one head.
    pub fn of_head(&self, p: Pointer<'b>, query: Value<'b>) -> Pointer<'b> {
        let w = self.worker;
        let queries = if w.spec.role.transposed() { w.columns } else { w.rows };
        p.offset(query.cast(ScalarType::U64) * queries.cast(ScalarType::U64))
    }

    pub fn bias(&self, head: Value<'b>) -> Option<Plane<'b>> {
        self.p.bias.as_ref().map(|bias| bias.plane(self.batch, head))
    }

    /// The number of columns, if the last tile is partial.
    pub fn edge(&self) -> Option<Value<'b>> {
        self.worker.spec.bounds_checks.columns.then_some(self.worker.columns)
    }

    pub fn stages(&self) -> [Stage<'b>; 2] {
        [self.worker.stage(0, self.p.depth), self.worker.stage(1, self.p.width)]
    }

    pub fn dropout_factors(&self, column0: Value<'b>, query: Value<'b>) -> Option<Patch<'b>> {
        let dropout: &DropoutParams = self.p.dropout.as_ref()?;
        Some(self.worker.dropout_factors(column0, query, dropout))
    }

    /// Runs `body` for each tile that has a visible column, with the first column of the tile, that
    /// of the next one, and which scores are to be masked.
    pub fn for_each_tile(&self, start: impl FnOnce(Value<'b>), body: impl Fn(Value<'b>, Value<'b>, Mask)) {
        let (w, step) = (self.worker, self.worker.spec.tile.columns);
        let runs = w.visible();
        let [Some(&(first, ..)), Some(&(_, end, _))] = [runs.first(), runs.last()] else { return };
        let first_that_exists = first.lt(end).select(first, 0);
        start(first_that_exists);
        w.b.barrier();
        for (first, run_end, mask) in runs {
            w.b.for_(first, run_end, step, |column0| {
                // The last step prefetches the first tile again: cheaper than a branch.
                let next = column0 + step;
                body(column0, next.lt(end).select(next, first_that_exists), mask);
            });
        }
    }

    /// The weight of a score, relative to 2^`base`.
    pub fn weight(&self, score: Value<'b>, base: Value<'b>) -> Value<'b> {
        let relative =
            if self.worker.spec.scale_in_exponential { score.fma(self.scale(), -base) } else { score - base };
        relative.fast_exp2()
    }

    /// Factor of scores, divided by ln 2: scores are exponents of two.
    pub fn scale(&self) -> Value<'b> {
        self.p.scale * LOG2_E
    }
}

/// The elementwise product of a patch and factors; the patch itself without factors.
pub fn scaled<'b>(patch: Patch<'b>, factors: Option<Patch<'b>>) -> Patch<'b> {
    let Some(factors) = factors else { return patch };
    patch.into_iter().zip(factors).map(|(x, y)| x * y).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
    use crate::attention::matrix_units::spec::BoundsChecks;
    use crate::attention::matrix_units::tile::Tile;
    use crate::matmul::matrix_unit_tile::Units;
    use dml_kernel::ComponentMap;

    #[test]
    fn kernels_are_valid() {
        let emulated = MatrixLayouts::emulated(Units {
            shape: [16; 3],
            lanes: 32,
            emulated: true,
            small: true,
            bytes: 2,
            transposes: false,
        });
        let column = ComponentMap::found([16, 16], 32, |lane, i| [2 * i + lane / 16, lane % 16]);
        let ways = [
            emulated,
            MatrixLayouts { emulated: false, ..emulated },
            MatrixLayouts { emulated: false, left: None, ..emulated },
            MatrixLayouts { emulated: false, sums: column.expect("it is a map"), ..emulated },
        ];
        for role in [Role::Forward, Role::Query, Role::Key, Role::Value, Role::KeyValue] {
            for (i, layouts) in ways.into_iter().enumerate() {
                for (dtype, bias, index, rows_in_registers) in
                    [(DType::F16, None, ScalarType::U32, true), (DType::F16, Some(DType::F32), ScalarType::U64, false)]
                {
                    let flag = rows_in_registers == (i % 2 == 0);
                    let spec = Spec {
                        role,
                        dtype,
                        bias,
                        causal: flag,
                        scale_in_exponential: bias.is_none() && flag,
                        dropout: !flag,
                        index,
                        tile: Tile { subgroups: 2, rows: 16, columns: 32, rows_in_registers, lazy: flag },
                        layouts,
                        depth: 32,
                        width: 48,
                        bounds_checks: BoundsChecks { columns: flag, depth: flag, width: !flag },
                        pairs: flag,
                        aligned: [[flag, !flag], [true, flag]],
                    };
                    let kernel = spec.build();
                    // Debian 12's SPIR-V validator does not know cooperative matrices.
                    if layouts.emulated {
                        crate::primitives::validate::accepted(&kernel);
                    } else {
                        assert!(kernel.emit().is_ok_and(|module| module.needs.matrix), "{spec:?}");
                    }
                }
            }
        }
    }
}
