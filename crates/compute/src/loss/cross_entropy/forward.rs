//! Cross-entropy: for each target, or reduced.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::loss::cross_entropy::problem::{Problem, Spec, Unknown};
use crate::loss::reduce::Reduce;
use crate::normalization::exponentials::{Exponentials, LOADS_IN_FLIGHT};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, RowPart, pairwise};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::I64;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Writes the loss of each target to `losses`, of the targets' shape; and to `statistics`
/// (`[2, rows]`, in the accumulator's dtype) the largest logit of each row and the logarithm of the
/// sum of exponentials relative to it.
pub fn losses(cx: &Context, p: &Problem, losses: &View, statistics: &View) -> Result<()> {
    let of = p.spec(&[]);
    let groups = of.rows.rows.groups(&p.extent);
    let arguments = ForwardArguments {
        losses,
        statistics,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        fault: cx.fault_of_index_in(p.name),
        ignore: p.ignore,
        smoothing: Number::Double(p.smoothing),
        extent: p.extent,
    };
    cx.run(&ForwardSpec { of, losses: losses.dtype }, &arguments, groups)
}

/// Writes the sum of the [`losses`], or their mean, to `loss`; and the sum of the targets' weights
/// to `total`. Both have no dimensions; losses and `total` are in the accumulator's dtype.
pub fn reduced(cx: &Context, p: &Problem, losses: &View, loss: &View, total: &View) -> Result<()> {
    let fold = Total { scalar: p.computed().compute(), mean: p.reduction == Reduce::Mean };
    let tables: SmallVec<[&View; 1]> = p.weight.iter().collect();
    let long = |x: i64| (DType::I64, Number::Int(x));
    let operands = Reduction {
        inputs: &[&p.target, losses],
        outs: &[loss, total],
        axes: Axes::all(false),
        tables: &tables,
        numbers: &[long(p.ignore), long(p.extent.n)],
    };
    reduce(cx, &fold, &operands)
}

/// Losses of rows, and the statistics for their gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ForwardSpec {
    of: Spec,
    losses: DType,
}

parameters! {
    ForwardSpec as s => ForwardArguments, ForwardParameters {
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
        let row = RowPart::part_of_row(b, &self.of.rows, extent, self.of.input, 1);
        // The target's logit is loaded first, so that its latency is hidden.
        let class = target.load(row.position.row).cast(ScalarType::I64);
        let classes = extent.n.cast(ScalarType::I64);
        let exists = class.ge(0) & class.lt(classes);
        let is_nan = self.of.unknown == Unknown::IsNan;
        let counts = if is_nan { exists } else { class.ne(ignore) };
        let chosen = exists.select(class, 0).cast(self.of.index());
        let logit = input.load(row.offset(chosen)).cast(scalar);
        let weight = weight.map(|w| w.load(chosen).cast(scalar));

        let register_elements = self.of.rows.register_elements;
        let at = row.elements(register_elements);
        let x = if register_elements > 0 { row.load(input, &at, f64::NEG_INFINITY) } else { Vec::new() };
        let Exponentials { largest, sum } = if register_elements > 0 {
            Exponentials::in_registers(&row, &at, &x).0
        } else {
            Exponentials::streamed(b, &row, input, scalar)
        };
        let log = math::log(sum);
        // The sum of all classes' log-probabilities.
        let all = self.of.smooth.then(|| {
            let logs = |row: &RowPart<'b>, at: &[Value<'b>], x: &[Value<'b>]| {
                let terms = at.iter().zip(x).map(|(&k, &x)| row.has(k).select(x - largest - log, 0.0)).collect();
                pairwise(terms, |x, y| x + y)
            };
            if register_elements > 0 {
                return row.sum(logs(&row, &at, &x));
            }
            let own = b.var(b.float(scalar, 0.0));
            row.for_each_chunk(LOADS_IN_FLIGHT, |row, at| {
                own.set(own.get() + logs(row, at, &row.load(input, at, 0.0)))
            });
            row.sum(own.get())
        });
        b.if_(row.position.valid & row.position.lane.eq(0), || {
            b.if_(counts & !exists, || fault.report(class, classes, 1));
            statistics.store(row.position.row, largest);
            statistics.store(extent.rows + row.position.row, log);
            let own = logit - largest - log;
            let own = weight.map_or(-own, |w| -(own * w));
            let loss = all.map_or(own, |all| {
                let share = smoothing / extent.n.cast(scalar);
                (own.like(1.0) - smoothing) * own + -all * share
            });
            let otherwise = loss.like(if is_nan { f64::NAN } else { 0.0 });
            losses.store(row.position.row, (counts & exists).select(loss, otherwise));
        });
    }
}

/// Sums losses and the targets' weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    scalar: ScalarType,
    mean: bool,
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        "cross_entropy_total"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; 2]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); 2]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let (class, ignore, classes) = (elements[0].cast(ScalarType::I64), s.numbers[0], s.numbers[1]);
        let counts = class.ne(ignore) & class.ge(0) & class.lt(classes);
        let weight = match s.tables.first() {
            Some(weights) => weights.load(counts.select(class, 0)).cast(self.scalar),
            None => s.b.float(self.scalar, 1.0),
        };
        smallvec![elements[1].cast(self.scalar), counts.select(weight, 0.0)]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / x[1] } else { x[0] }, x[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::rows::RowDistribution;
    use crate::primitives::validate::accepted;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        let index = ScalarType::U32;
        for (smooth, weight) in [(false, None), (true, None), (false, Some(DType::F32))] {
            for rows in [
                RowDistribution::contiguous(index, 10, DType::BF16, &[(2, 2)]),
                RowDistribution::contiguous(index, 4096, DType::BF16, &[]),
                RowDistribution::contiguous(ScalarType::U64, 50_257, DType::BF16, &[]),
                RowDistribution::columns(index, 5, 9),
            ] {
                let of =
                    Spec { input: DType::BF16, target: DType::I64, weight, smooth, unknown: Unknown::IsReported, rows };
                accepted(&ForwardSpec { of, losses: DType::F32 }.build());
            }
            let rows = RowDistribution::columns(ScalarType::U64, 5000, 9);
            let of = Spec { input: DType::F64, target: DType::U8, weight, smooth, unknown: Unknown::IsReported, rows };
            accepted(&ForwardSpec { of, losses: DType::F64 }.build());
        }
    }

    #[test]
    fn the_fold_is_valid() {
        let fold = Total { scalar: ScalarType::F32, mean: true };
        validate(&fold, &[DType::I64, DType::F32], &[DType::BF16, DType::F32], &[DType::I64; 2]);
    }
}
