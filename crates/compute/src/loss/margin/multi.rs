//! The multi-class margin loss with one class per example: the hinge terms of the other classes'
//! scores against the target's score.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::{Fault, Reporter};
use crate::loss::margin::problem::Problem;
use crate::loss::reduce::Reduce;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, RowPart, Rows};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Writes the loss of each row to `losses`: `[rows]`, in the accumulator's dtype. `power` is 1
/// or 2.
pub fn losses(cx: &Context, p: &Problem, power: f64, margin: f64, losses: &View) -> Result<()> {
    if p.rows == 0 {
        return Ok(());
    }
    let (spec, extent) = (Spec::new(p, power), p.extent());
    let arguments = Arguments {
        losses,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        fault: cx.fault_of_index(),
        margin: Number::Double(margin),
        extent,
    };
    let groups = spec.rows.groups(&extent);
    cx.run(&ForwardSpec(spec), &arguments, groups)
}

/// Writes the gradient of the scores to `out`: contiguous, of their shape and dtype. `grad` is the
/// gradient of the loss: one number, or one per row if losses are not reduced.
pub fn gradient(cx: &Context, p: &Problem, power: f64, margin: f64, grad: &View, out: &View) -> Result<()> {
    if p.rows == 0 {
        return Ok(());
    }
    let (spec, extent) = (Spec::new(p, power), p.extent());
    let arguments = BackwardArguments {
        out,
        grad,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        fault: cx.fault_of_index(),
        margin: Number::Double(margin),
        part: Number::Double(1.0 / p.divisor()),
        extent,
    };
    let groups = spec.rows.groups(&extent);
    cx.run(&BackwardSpec { of: spec, single: p.reduction != Reduce::None }, &arguments, groups)
}

/// Specialisation common to both kernels: everything that changes their code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    weighted: bool,
    /// The power is 2.
    squared: bool,
    rows: Rows,
}

impl Spec {
    fn new(p: &Problem, power: f64) -> Spec {
        let (rows, _) = Rows::of_contiguous(p.index(), p.classes);
        Spec { dtype: p.input.dtype, weighted: p.weight.is_some(), squared: power == 2.0, rows }
    }

    /// The dtype of weights, if there are any.
    fn weight(&self) -> Option<DType> {
        self.weighted.then_some(self.dtype)
    }
}

/// The class, score and weight of a row's target. An invalid class is reported; its row contributes
/// nothing.
struct Target<'b> {
    class: Value<'b>,
    in_range: Value<'b>,
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
        let in_range = given.ge(0) & given.lt(n);
        b.if_(!in_range, || fault.report(given, n, 1));
        // For an invalid class 0, which is in range; its result is not used.
        let class = b.var(classes.like(0.0));
        b.if_(in_range, || class.set(given.cast(classes.scalar())));
        let class = class.get();
        let weight = weight.map(|w| w.load(class));
        Target { class, in_range, score: input.load(row * classes + class), weight }
    }
}

/// Losses of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ForwardSpec(Spec);

parameters! {
    ForwardSpec as s => Arguments, Parameters {
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
        let share = RowPart::of(b, &self.0.rows, extent, self.0.dtype, 1);
        let target = Target::load(b, input, target, weight, fault, share.position.row, share.n);
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
        let first = share.position.lane.eq(0) & share.position.valid;
        b.if_(first, || losses.store(share.position.row, target.in_range.select(loss, zero)));
    }
}

/// The gradient of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardSpec {
    of: Spec,
    /// The loss is one number; otherwise one per row.
    single: bool,
}

parameters! {
    BackwardSpec as s => BackwardArguments, BackwardParameters {
        out: Output = s.of.dtype,
        grad: Input = s.of.dtype,
        input: Input = s.of.dtype,
        target: Input = DType::I64,
        weight: Option<Input> = s.of.weight(),
        fault: Fault,
        margin: InDType = accumulator(s.of.dtype),
        /// Factor of an element's term in the loss.
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
        let share = RowPart::of(b, &self.of.rows, extent, self.of.dtype, 1);
        let target = Target::load(b, input, target, weight, fault, share.position.row, share.n);
        let grad = if self.single { grad.load(0) } else { grad.load(share.position.row) };
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
        // Every term depends on the target's score with the opposite sign.
        let total = share.sum(sum.get()) * grad;
        b.if_(share.position.lane.eq(0), || share.store(out, target.class, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, n) in [(DType::BF16, ScalarType::U32, 2), (DType::F64, ScalarType::U64, 3000)] {
            let (rows, _) = Rows::of_contiguous(index, n);
            accepted(&ForwardSpec(Spec { dtype, weighted: true, squared: n > 2, rows }).build());
            let of = Spec { dtype, weighted: n > 2, squared: true, rows };
            accepted(&BackwardSpec { of, single: n == 2 }.build());
        }
    }
}
