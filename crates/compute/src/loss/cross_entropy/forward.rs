//! Cross-entropy: of each target, or summed.

use crate::fault::Fault;
use crate::loss::cross_entropy::problem::Spec;
use crate::normalization::exponentials::{AHEAD, Exponentials};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, Share, pairwise};
use crate::reduction::fold::{Fold, Scope, Values};
use dml_engine::interface::I64;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Losses of rows, and what their gradient needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForwardSpec {
    pub of: Spec,
    pub losses: DType,
}

parameters! {
    pub ForwardSpec as s => ForwardArguments, ForwardParameters {
        losses: Output = s.losses,
        statistics: Output = s.of.computed(),
        input: Input = s.of.input,
        target: Input = s.of.target,
        weight: Option<Input> = s.of.weight,
        fault: Fault,
        ignore: I64,
        smoothing: InDType = s.of.computed(),
        extent: RowExtent = s.of.index(),
    }
}

impl KernelSpec for ForwardSpec {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let ForwardParameters { losses, statistics, input, target, weight, fault, ignore, smoothing, extent } = p;
        let scalar = self.of.computed().compute();
        let row = Share::dealt(b, &self.of.rows, extent, self.of.input, 1);
        // The logit of the target is asked for before the rest, so that nobody waits for it
        // afterwards.
        let class = target.load(row.place.row).cast(ScalarType::I64);
        let classes = extent.n.cast(ScalarType::I64);
        let exists = class.ge(0) & class.lt(classes);
        let counts = class.ne(ignore);
        let chosen = exists.select(class, 0).cast(self.of.index());
        let logit = input.load(row.offset(chosen)).cast(scalar);
        let weight = weight.map(|w| w.load(chosen).cast(scalar));

        let held = self.of.rows.held;
        let at = row.elements(held);
        let x = if held > 0 { row.load(input, &at, f64::NEG_INFINITY) } else { Vec::new() };
        let Exponentials { largest, sum } = if held > 0 {
            Exponentials::of_held(&row, &at, &x).0
        } else {
            Exponentials::of_long(b, &row, input, scalar)
        };
        let log = math::log(sum);
        // The logarithms of all classes' probabilities, added up.
        let all = self.of.smooth.then(|| {
            let logs = |row: &Share<'b>, at: &[Value<'b>], x: &[Value<'b>]| {
                let terms = at.iter().zip(x).map(|(&k, &x)| row.has(k).select(x - largest - log, 0.0)).collect();
                pairwise(terms, |x, y| x + y)
            };
            if held > 0 {
                return row.sum(logs(&row, &at, &x));
            }
            let own = b.var(b.float(scalar, 0.0));
            row.walk(AHEAD, |row, at| own.set(own.get() + logs(row, at, &row.load(input, at, 0.0))));
            row.sum(own.get())
        });
        b.if_(row.place.valid & row.place.lane.eq(0), || {
            b.if_(counts & !exists, || fault.report(class, classes, 1));
            statistics.store(row.place.row, largest);
            statistics.store(extent.rows + row.place.row, log);
            let own = logit - largest - log;
            let own = weight.map_or(-own, |w| -(own * w));
            let loss = all.map_or(own, |all| {
                let share = smoothing / extent.n.cast(scalar);
                (own.like(1.0) - smoothing) * own + -all * share
            });
            losses.store(row.place.row, (counts & exists).select(loss, 0.0));
        });
    }
}

/// Of targets and their losses: sums these, and the targets' weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Total {
    pub scalar: ScalarType,
    pub mean: bool,
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        "cross_entropy_total"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; 2]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); 2]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let (class, ignore, classes) = (elements[0].cast(ScalarType::I64), s.numbers[0], s.numbers[1]);
        let counts = class.ne(ignore) & class.ge(0) & class.lt(classes);
        let weight = match s.tables.first() {
            Some(weights) => weights.load(counts.select(class, 0)).cast(self.scalar),
            None => s.b.float(self.scalar, 1.0),
        };
        smallvec![elements[1].cast(self.scalar), counts.select(weight, 0.0)]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / x[1] } else { x[0] }, x[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::rows::Dealt;
    use crate::primitives::validate::accepted;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        let index = ScalarType::U32;
        for (smooth, weight) in [(false, None), (true, None), (false, Some(DType::F32))] {
            for rows in [
                Dealt::neighbours(index, 10, DType::BF16, &[(2, 2)]),
                Dealt::neighbours(index, 4096, DType::BF16, &[]),
                Dealt::neighbours(ScalarType::U64, 50_257, DType::BF16, &[]),
                Dealt::columns(index, 5, 9),
            ] {
                let of = Spec { input: DType::BF16, target: DType::I64, weight, smooth, rows };
                accepted(&ForwardSpec { of, losses: DType::F32 }.build());
            }
            let rows = Dealt::columns(ScalarType::U64, 5000, 9);
            let of = Spec { input: DType::F64, target: DType::U8, weight, smooth, rows };
            accepted(&ForwardSpec { of, losses: DType::F64 }.build());
        }
    }

    #[test]
    fn the_fold_is_valid() {
        let fold = Total { scalar: ScalarType::F32, mean: true };
        validate(&fold, &[DType::I64, DType::F32], &[DType::BF16, DType::F32], &[DType::I64; 2]);
    }
}
