//! The gradient of the CTC loss by log-probabilities that came out of log_softmax (it is that of
//! log_softmax's input).

use crate::loss::ctc::problem::{SizesOf, Spec};
use crate::loss::ctc::states::{Scope, log_sum};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, math};

/// The gradient of labels that no state has, of frames beyond an example's, and of examples that
/// cannot be spelled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RestSpec(pub Spec);

parameters! {
    pub RestSpec as s => RestArguments, RestParameters {
        out: Output = s.0.dtype,
        grad: Input = s.0.dtype,
        loss: Input = s.0.dtype,
        log_probs: Input = s.0.dtype,
        lengths: Input = DType::I64,
        sizes: SizesOf = s.0.index,
        /// 1 if examples that cannot be spelled have no gradient.
        zero: U32,
    }
}

impl KernelSpec for RestSpec {
    fn name(&self) -> &'static str {
        "ctc_gradient_rest"
    }

    fn write<'b>(&self, b: &'b Builder, p: RestParameters<'b>) {
        let RestParameters { out, grad, loss, log_probs, lengths, sizes, zero } = p;
        let Spec { dtype, index, .. } = self.0;
        let i = linear_id(b, index);
        let row = i / sizes.labels;
        b.if_(row.lt(sizes.frames * sizes.batch), || {
            let frame = row / sizes.batch;
            let example = row - frame * sizes.batch;
            let value = b.var(b.float(dtype.compute(), 0.0));
            b.if_(frame.lt(lengths.load(example).cast(index)), || {
                let lost = loss.load(example).is_inf();
                let usual = math::exp(log_probs.load(i)) * grad.load(example);
                let impossible = zero.ne(0).select(usual.like(0.0), usual.like(f64::NAN));
                value.set(lost.select(impossible, usual));
            });
            out.store(i, value.get());
        });
    }
}

/// For each label of an example: the place of the next equal one (or the number of labels), and -1
/// minus it where an earlier one is equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinksSpec(pub Spec);

parameters! {
    pub LinksSpec as s => LinksArguments, LinksParameters {
        next: Output = DType::I64,
        targets: Input = s.0.targets,
        lengths: Input = DType::I64,
        batch: Index = s.0.index,
        /// The most labels of an example.
        most: Index = s.0.index,
    }
}

impl KernelSpec for LinksSpec {
    fn name(&self) -> &'static str {
        "ctc_links"
    }

    fn write<'b>(&self, b: &'b Builder, p: LinksParameters<'b>) {
        let LinksParameters { next, targets, lengths, batch, most } = p;
        let index = self.0.index;
        let i = linear_id(b, index);
        let example = i / most;
        let place = i - example * most;
        b.if_(example.lt(batch), || {
            let count = lengths.load(batch + example).cast(index);
            b.if_(place.lt(count), || {
                let start = lengths.load(batch * 2 + example).cast(index);
                let label = targets.load(start + place);
                let (first, k) = (b.var(b.bool(true)), b.var(place.like(0.0)));
                b.while_(
                    || first.get() & k.get().lt(place),
                    || {
                        first.set(targets.load(start + k.get()).ne(label));
                        k.set(k.get() + 1);
                    },
                );
                let (found, k) = (b.var(b.bool(false)), b.var(place + 1));
                b.while_(
                    || !found.get() & k.get().lt(count),
                    || b.if_else(targets.load(start + k.get()).eq(label), || found.set(true), || k.set(k.get() + 1)),
                );
                let after = k.get().cast(ScalarType::I64);
                next.store(i, first.get().select(after, -1 - after));
            });
        });
    }
}

/// The gradient of the labels that states have: of every label by the invocation of its first
/// place, and of blank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelsSpec(pub Spec);

parameters! {
    pub LabelsSpec as s => LabelsArguments, LabelsParameters {
        out: Output = s.0.dtype,
        grad: Input = s.0.dtype,
        loss: Input = s.0.dtype,
        alpha: Input = s.0.dtype,
        beta: Input = s.0.dtype,
        next: Input = DType::I64,
        log_probs: Input = s.0.dtype,
        targets: Input = s.0.targets,
        lengths: Input = DType::I64,
        sizes: SizesOf = s.0.index,
    }
}

impl KernelSpec for LabelsSpec {
    fn name(&self) -> &'static str {
        "ctc_gradient"
    }

    fn write<'b>(&self, b: &'b Builder, p: LabelsParameters<'b>) {
        write_labels(b, &self.0, p);
    }
}

fn write_labels<'b>(b: &'b Builder, spec: &Spec, p: LabelsParameters<'b>) {
    let LabelsParameters { out, grad, loss, alpha, beta, next, log_probs, targets, lengths, sizes } = p;
    let (dtype, index) = (spec.dtype, spec.index);
    let s = Scope { b, log_probs, targets, lengths, sizes };
    let most = sizes.states >> 1;
    let thread = linear_id(b, index);
    let row = thread / (most + 1);
    let place = thread - row * (most + 1);
    let frame = row / sizes.batch;
    let number = row - frame * sizes.batch;
    let of_blank = place.eq(most);
    b.if_(frame.lt(sizes.frames), || {
        let e = s.example(number);
        let nll = loss.load(number);
        let wanted = b.var(frame.lt(e.frames) & !nll.is_inf());
        b.if_(wanted.get() & !of_blank, || {
            wanted.set(place.lt(e.labels));
            b.if_(wanted.get(), || wanted.set(next.load(number * most + place).ge(0)));
        });
        b.if_(wanted.get(), || {
            let first = s.frame(&e, frame);
            let total = b.var(b.float(dtype.compute(), f64::NEG_INFINITY));
            // Even states from the first for blank; odd ones from link to link for a label.
            let state = b.var(of_blank.select(place.like(0.0), 2 * place + 1));
            b.while_(
                || state.get().le(2 * e.labels),
                || {
                    let at = state.get();
                    total.set(log_sum(&[total.get(), alpha.load(first + at) + beta.load(first + at)]));
                    state.set(at + 2);
                    b.if_(!of_blank, || {
                        let link = next.load(number * most + (at >> 1));
                        let link = link.lt(0).select(-1 - link, link);
                        state.set(2 * link.cast(index) + 1);
                    });
                },
            );
            let label = b.var(sizes.blank);
            b.if_(!of_blank, || label.set(s.label(&e, 2 * place + 1)));
            let log_prob = s.log_prob(&e, frame, label.get());
            let value = math::exp(log_prob) - math::exp(total.get() + nll - log_prob);
            let at = (frame * sizes.batch + number) * sizes.labels + label.get();
            // A label that does not exist was read as blank, which has its own invocation.
            b.if_(of_blank | label.get().ne(sizes.blank), || out.store(at, value * grad.load(number)));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, targets, index) in
            [(DType::F32, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            let spec = Spec { dtype, targets, index };
            accepted(&RestSpec(spec.clone()).build());
            accepted(&LinksSpec(spec.clone()).build());
            accepted(&LabelsSpec(spec).build());
        }
    }
}
