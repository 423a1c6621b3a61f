//! The loss of one class an example: how far the scores of the other classes come within a margin
//! of its own.

use crate::dtype::accumulator;
use crate::fault::{Fault, Reporter};
use crate::loss::margin::problem::Problem;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, Rows, Share};
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// What changes the code of both kernels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub dtype: DType,
    pub weighted: bool,
    /// The power is 2.
    pub squared: bool,
    pub rows: Rows,
}

impl Spec {
    pub fn new(p: &Problem, power: f64) -> Spec {
        let (rows, _) = Rows::of_neighbours(p.index(), p.classes);
        Spec { dtype: p.input.dtype, weighted: p.weight.is_some(), squared: power == 2.0, rows }
    }

    /// The dtype of weights, if there are any.
    fn weight(&self) -> Option<DType> {
        self.weighted.then_some(self.dtype)
    }
}

/// The target's class of a row, its score and its weight. A class that does not exist is reported;
/// its row counts nothing.
struct Target<'b> {
    class: Value<'b>,
    exists: Value<'b>,
    score: Value<'b>,
    weight: Option<Value<'b>>,
}

impl<'b> Target<'b> {
    fn load(
        b: &'b Builder,
        input: Pointer<'b>,
        target: Pointer<'b>,
        weight: Option<Pointer<'b>>,
        fault: Reporter<'b>,
        row: Value<'b>,
        classes: Value<'b>,
    ) -> Target<'b> {
        let given = target.load(row);
        let n = classes.cast(ScalarType::I64);
        let exists = given.ge(0) & given.lt(n);
        b.if_(!exists, || fault.report(given, n, 1));
        // All ones would be far outside; 0 is inside, and what it gives is not used.
        let class = b.var(classes.like(0.0));
        b.if_(exists, || class.set(given.cast(classes.scalar())));
        let class = class.get();
        let weight = weight.map(|w| w.load(class));
        Target { class, exists, score: input.load(row * classes + class), weight }
    }
}

/// Losses of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForwardSpec(pub Spec);

parameters! {
    pub ForwardSpec as s => Arguments, Parameters {
        losses: Output = accumulator(s.0.dtype),
        input: Input = s.0.dtype,
        target: Input = DType::I64,
        weight: Option<Input> = s.0.weight(),
        fault: Fault,
        margin: InDType = accumulator(s.0.dtype),
        extent: RowExtent = s.0.rows.index,
    }
}

impl KernelSpec for ForwardSpec {
    fn name(&self) -> &'static str {
        "multi_margin_loss"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { losses, input, target, weight, fault, margin, extent } = p;
        let share = Share::of(b, &self.0.rows, extent, self.0.dtype, 1);
        let target = Target::load(b, input, target, weight, fault, share.place.row, share.n);
        let sum = b.var(margin.like(0.0));
        b.for_(share.lane, share.n, share.lanes, |k| {
            let beyond = margin - target.score + input.load(share.offset(k));
            let term = if self.0.squared { beyond * beyond } else { beyond };
            b.if_(k.ne(target.class) & beyond.gt(0.0), || sum.set(sum.get() + term));
        });
        let mut loss = share.sum(sum.get()) / share.n.cast(margin.scalar());
        if let Some(w) = target.weight {
            loss = loss * w;
        }
        let zero = loss.like(0.0);
        let first = share.place.lane.eq(0) & share.place.valid;
        b.if_(first, || losses.store(share.place.row, target.exists.select(loss, zero)));
    }
}

/// The gradient of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackwardSpec {
    pub of: Spec,
    /// The loss is one number, otherwise one a row.
    pub single: bool,
}

parameters! {
    pub BackwardSpec as s => BackwardArguments, BackwardParameters {
        out: Output = s.of.dtype,
        grad: Input = s.of.dtype,
        input: Input = s.of.dtype,
        target: Input = DType::I64,
        weight: Option<Input> = s.of.weight(),
        fault: Fault,
        margin: InDType = accumulator(s.of.dtype),
        /// What an element's term counts in the loss.
        part: InDType = accumulator(s.of.dtype),
        extent: RowExtent = s.of.rows.index,
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "multi_margin_loss_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { out, grad, input, target, weight, fault, margin, part, extent } = p;
        let share = Share::of(b, &self.of.rows, extent, self.of.dtype, 1);
        let target = Target::load(b, input, target, weight, fault, share.place.row, share.n);
        let grad = if self.single { grad.load(0) } else { grad.load(share.place.row) };
        let unit = target.weight.map_or(part, |w| part * w);
        let sum = b.var(margin.like(0.0));
        b.for_(share.lane, share.n, share.lanes, |k| {
            let beyond = margin - target.score + input.load(share.offset(k));
            let slope = if self.of.squared { 2.0 * beyond * unit } else { unit };
            let slope = beyond.gt(0.0).select(slope, 0.0);
            b.if_(k.ne(target.class), || {
                sum.set(sum.get() - slope);
                share.store(out, k, slope * grad);
            });
        });
        // The target's score lowers every term.
        let total = share.sum(sum.get()) * grad;
        b.if_(share.place.lane.eq(0), || share.store(out, target.class, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, n) in [(DType::BF16, ScalarType::U32, 2), (DType::F64, ScalarType::U64, 3000)] {
            let (rows, _) = Rows::of_neighbours(index, n);
            accepted(&ForwardSpec(Spec { dtype, weighted: true, squared: n > 2, rows }).build());
            let of = Spec { dtype, weighted: n > 2, squared: true, rows };
            accepted(&BackwardSpec { of, single: n == 2 }.build());
        }
    }
}
