//! The loss of several classes an example: every class that is no target against every target, with
//! a margin of 1. Each element of the gradient is computed on its own.

use crate::dtype::accumulator;
use crate::fault::Fault;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowExtent, Rows, Share};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Runs `body` for each class in a row's list that exists.
fn each_target<'b>(
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

/// 1 for the classes of a row's list, 0 for others. A class that does not exist is reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetsSpec {
    pub flags: DType,
    pub index: ScalarType,
}

parameters! {
    pub TargetsSpec as s => TargetsArguments, TargetsParameters {
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
            each_target(b, target, row * classes, classes, |class| b.if_(class.eq(own), || found.set(1.0)));
            is_target.store(i, found.get());
            let here = target.load(i);
            let size = classes.cast(ScalarType::I64);
            b.if_(here.lt(-1) | here.ge(size), || fault.report(here, size, 1));
        });
    }
}

/// Losses of rows: over classes that are no targets, each against every target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForwardSpec {
    pub dtype: DType,
    pub flags: DType,
    pub rows: Rows,
}

parameters! {
    pub ForwardSpec as s => ForwardArguments, ForwardParameters {
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
        let share = Share::of(b, &self.rows, extent, self.dtype, 1);
        let scalar = accumulator(self.dtype).compute();
        let sum = b.var(b.float(scalar, 0.0));
        b.for_(share.lane, share.n, share.lanes, |k| {
            let at = share.offset(k);
            let score = input.load(at);
            b.if_(is_target.load(at).eq(0.0), || {
                each_target(b, target, share.place.first, share.n, |class| {
                    let beyond: Value = 1.0 - input.load(share.place.first + class) + score;
                    b.if_(beyond.gt(0.0), || sum.set(sum.get() + beyond));
                });
            });
        });
        let loss = share.sum(sum.get()) / share.n.cast(scalar);
        b.if_(share.place.lane.eq(0) & share.place.valid, || losses.store(share.place.row, loss));
    }
}

/// The gradient.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackwardSpec {
    pub out: DType,
    pub grad: DType,
    pub input: DType,
    pub flags: DType,
    /// The loss is one number, otherwise one a row.
    pub single: bool,
    pub index: ScalarType,
}

parameters! {
    pub BackwardSpec as s => BackwardArguments, BackwardParameters {
        grad_input: Output = s.out,
        grad: Input = s.grad,
        input: Input = s.input,
        target: Input = DType::I64,
        is_target: Input = s.flags,
        /// What a term counts in the loss.
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
                    each_target(b, target, first, classes, |class| {
                        let beyond: Value = 1.0 - input.load(first + class) + score;
                        b.if_(beyond.gt(0.0), || count.set(count.get() + 1.0));
                    });
                },
                || {
                    // As often as the list names it.
                    let times = b.var(part.like(0.0));
                    each_target(b, target, first, classes, |class| {
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
            let (rows, _) = Rows::of_neighbours(index, n);
            accepted(&TargetsSpec { flags: dtype, index }.build());
            accepted(&ForwardSpec { dtype, flags: dtype, rows }.build());
            let spec = BackwardSpec { out: dtype, grad: dtype, input: dtype, flags: dtype, single: n > 2, index };
            accepted(&spec.build());
        }
    }
}
