//! The margin loss with several classes per example: every class that is not a target against every
//! target, with a margin of 1. Each element of the gradient is computed separately.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::Fault;
use crate::loss::margin::problem::Problem;
use crate::loss::reduce::Reduce;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, RowPart, Rows};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Writes the loss of each row to `losses`: `[rows]`, in the accumulator's dtype. The classes of a
/// row end before its first negative one. Also writes `flags` (contiguous, `[rows, classes]`): 1
/// for the classes in a row's list, 0 for others.
pub fn losses(cx: &Context, p: &Problem, flags: &View, losses: &View) -> Result<()> {
    if p.rows == 0 {
        return Ok(());
    }
    let (index, numel, extent) = (p.index(), p.input.numel(), p.extent());
    let arguments =
        TargetsArguments { is_target: flags, target: &p.target, fault: cx.fault_of_index(), numel, classes: p.classes };
    cx.run_threads(&TargetsSpec { flags: flags.dtype, index }, &arguments, numel as u64)?;
    let (rows, _) = Rows::of_contiguous(index, p.classes);
    let arguments = ForwardArguments { losses, input: &p.input, target: &p.target, is_target: flags, extent };
    let spec = ForwardSpec { dtype: p.input.dtype, flags: flags.dtype, rows };
    cx.run(&spec, &arguments, rows.groups(&extent))
}

/// Writes the gradient of the scores to `out`: contiguous, of their shape. `grad` is the gradient
/// of the loss: one number, or one per row if losses are not reduced. `flags` are those of
/// [`losses`], contiguous.
pub fn gradient(cx: &Context, p: &Problem, grad: &View, flags: &View, out: &View) -> Result<()> {
    if p.rows == 0 {
        return Ok(());
    }
    let numel = p.input.numel();
    let spec = BackwardSpec {
        out: out.dtype,
        grad: grad.dtype,
        input: p.input.dtype,
        flags: flags.dtype,
        single: p.reduction != Reduce::None,
        index: p.index(),
    };
    let arguments = BackwardArguments {
        grad_input: out,
        grad,
        input: &p.input,
        target: &p.target,
        is_target: flags,
        part: Number::Double(1.0 / p.divisor()),
        numel,
        classes: p.classes,
    };
    cx.run_threads(&spec, &arguments, numel as u64)
}

/// Runs `body` for each valid class in a row's list.
fn for_each_target<'b>(
    b: &'b Builder,
    target: Pointer<'b>,
    first: Value<'b>,
    classes: Value<'b>,
    body: impl FnOnce(Value<'b>),
) {
    let more = b.var(b.bool(true));
    let k = b.var(classes.like(0.0));
    b.while_(
        || more.get() & k.get().lt(classes),
        || {
            let class = target.load(first + k.get());
            more.set(class.ge(0));
            b.if_(class.ge(0) & class.lt(classes.cast(ScalarType::I64)), || body(class.cast(classes.scalar())));
            k.set(k.get() + 1);
        },
    );
}

/// 1 for the classes in a row's list, 0 for others. An invalid class is reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TargetsSpec {
    flags: DType,
    index: ScalarType,
}

parameters! {
    TargetsSpec as s => TargetsArguments, TargetsParameters {
        is_target: Output = s.flags,
        target: Input = DType::I64,
        fault: Fault,
        numel: Index = s.index,
        classes: Index = s.index,
    }
}

impl KernelSpec for TargetsSpec {
    fn name(&self) -> &'static str {
        "multilabel_margin_targets"
    }

    fn write<'b>(&self, b: &'b Builder, p: TargetsParameters<'b>) {
        let TargetsParameters { is_target, target, fault, numel, classes } = p;
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let row = i / classes;
            let own = i - row * classes;
            let found = b.var(b.float(self.flags.compute(), 0.0));
            for_each_target(b, target, row * classes, classes, |class| b.if_(class.eq(own), || found.set(1.0)));
            is_target.store(i, found.get());
            let here = target.load(i);
            let size = classes.cast(ScalarType::I64);
            b.if_(here.lt(-1) | here.ge(size), || fault.report(here, size, 1));
        });
    }
}

/// Losses of rows: every class that is not a target against every target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ForwardSpec {
    dtype: DType,
    flags: DType,
    rows: Rows,
}

parameters! {
    ForwardSpec as s => ForwardArguments, ForwardParameters {
        losses: Output = accumulator(s.dtype),
        input: Input = s.dtype,
        target: Input = DType::I64,
        is_target: Input = s.flags,
        extent: RowExtent = s.rows.index,
    }
}

impl KernelSpec for ForwardSpec {
    fn name(&self) -> &'static str {
        "multilabel_margin_loss"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let ForwardParameters { losses, input, target, is_target, extent } = p;
        let share = RowPart::of(b, &self.rows, extent, self.dtype, 1);
        let scalar = accumulator(self.dtype).compute();
        let sum = b.var(b.float(scalar, 0.0));
        b.for_(share.lane, share.n, share.lanes, |k| {
            let at = share.offset(k);
            let score = input.load(at);
            b.if_(is_target.load(at).eq(0.0), || {
                for_each_target(b, target, share.position.first, share.n, |class| {
                    let beyond: Value = 1.0 - input.load(share.position.first + class) + score;
                    b.if_(beyond.gt(0.0), || sum.set(sum.get() + beyond));
                });
            });
        });
        let loss = share.sum(sum.get()) / share.n.cast(scalar);
        b.if_(share.position.lane.eq(0) & share.position.valid, || losses.store(share.position.row, loss));
    }
}

/// The gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardSpec {
    out: DType,
    grad: DType,
    input: DType,
    flags: DType,
    /// The loss is one number; otherwise one per row.
    single: bool,
    index: ScalarType,
}

parameters! {
    BackwardSpec as s => BackwardArguments, BackwardParameters {
        grad_input: Output = s.out,
        grad: Input = s.grad,
        input: Input = s.input,
        target: Input = DType::I64,
        is_target: Input = s.flags,
        /// Factor of a term in the loss.
        part: InDType = accumulator(s.input),
        numel: Index = s.index,
        classes: Index = s.index,
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "multilabel_margin_loss_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { grad_input, grad, input, target, is_target, part, numel, classes } = p;
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let row = i / classes;
            let (first, own) = (row * classes, i - row * classes);
            let score = input.load(i);
            let count = b.var(part.like(0.0));
            b.if_else(
                is_target.load(i).eq(0.0),
                || {
                    for_each_target(b, target, first, classes, |class| {
                        let beyond: Value = 1.0 - input.load(first + class) + score;
                        b.if_(beyond.gt(0.0), || count.set(count.get() + 1.0));
                    });
                },
                || {
                    // The number of times that the list has this class.
                    let times = b.var(part.like(0.0));
                    for_each_target(b, target, first, classes, |class| {
                        b.if_(class.eq(own), || times.set(times.get() + 1.0));
                    });
                    b.for_(classes.like(0.0), classes, 1, |k| {
                        let beyond: Value = 1.0 - score + input.load(first + k);
                        let counts = is_target.load(first + k).eq(0.0) & beyond.gt(0.0);
                        b.if_(counts, || count.set(count.get() - times.get()));
                    });
                },
            );
            let unit = if self.single { grad.load(0) } else { grad.load(row) };
            grad_input.store(i, count.get() * (unit * part));
        });
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
            accepted(&TargetsSpec { flags: dtype, index }.build());
            accepted(&ForwardSpec { dtype, flags: dtype, rows }.build());
            let spec = BackwardSpec { out: dtype, grad: dtype, input: dtype, flags: dtype, single: n > 2, index };
            accepted(&spec.build());
        }
    }
}
