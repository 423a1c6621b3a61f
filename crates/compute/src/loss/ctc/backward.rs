//! The gradient of the CTC loss with respect to log-probabilities that log_softmax computed (it is
//! the gradient of log_softmax's input).

use crate::context::Context;
use crate::error::Result;
use crate::loss::ctc::paths::fill_paths;
use crate::loss::ctc::problem::{Problem, SizesOf, Spec};
use crate::loss::ctc::states::{CtcScope, log_sum};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, math};

/// Writes the gradient of the log-probabilities, of their shape: `out` is contiguous and not empty.
/// `grad` and `loss` are `[batch]` and `alpha` is that of [`losses`](super::forward::losses), all
/// contiguous. `zero_infinity`: an example with an infinite loss has no gradient; otherwise it is
/// NaN.
pub fn gradient(
    cx: &Context,
    p: &Problem,
    grad: &View,
    loss: &View,
    alpha: &View,
    zero_infinity: bool,
    out: &View,
) -> Result<()> {
    let sizes = p.sizes;
    let beta = p.paths(cx)?;
    fill_paths(cx, p, &beta, true)?;
    let arguments = RestArguments {
        out,
        grad,
        loss,
        log_probs: &p.log_probs,
        lengths: &p.lengths,
        sizes,
        zero: u32::from(zero_infinity),
    };
    cx.run_threads(&PaddingGradientSpec(p.spec()), &arguments, out.numel() as u64)?;

    let most = (sizes.states - 1) / 2;
    let next = cx.empty(DType::I64, &[sizes.batch, most])?;
    if most > 0 {
        let arguments =
            LinksArguments { next: &next, targets: &p.targets, lengths: &p.lengths, batch: sizes.batch, most };
        cx.run_threads(&NextEqualLabelSpec(p.spec()), &arguments, (sizes.batch * most) as u64)?;
    }
    let arguments = LabelsArguments {
        out,
        grad,
        loss,
        alpha,
        beta: &beta,
        next: &next,
        log_probs: &p.log_probs,
        targets: &p.targets,
        lengths: &p.lengths,
        sizes,
    };
    let threads = sizes.frames * sizes.batch * (most + 1);
    cx.run_threads(&LabelsSpec(p.spec()), &arguments, threads as u64)
}

/// The gradient of labels without a state, of frames beyond the end of an example, and of examples
/// without a valid alignment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PaddingGradientSpec(Spec);

parameters! {
    PaddingGradientSpec as s => RestArguments, RestParameters {
        out: Output = s.0.dtype,
        grad: Input = s.0.dtype,
        loss: Input = s.0.dtype,
        log_probs: Input = s.0.dtype,
        lengths: Input = DType::I64,
        sizes: SizesOf = s.0.index,
        /// 1 if examples without a valid alignment have no gradient.
        zero: U32,
    }
}

impl KernelSpec for PaddingGradientSpec {
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

/// For each label of an example: the index of the next equal label (or the number of labels), or -1
/// minus that index if an earlier label is equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NextEqualLabelSpec(Spec);

parameters! {
    NextEqualLabelSpec as s => LinksArguments, LinksParameters {
        next: Output = DType::I64,
        targets: Input = s.0.targets,
        lengths: Input = DType::I64,
        batch: Index = s.0.index,
        /// Maximum number of labels of an example.
        most: Index = s.0.index,
    }
}

impl KernelSpec for NextEqualLabelSpec {
    fn name(&self) -> &'static str {
        "ctc_links"
    }

    fn write<'b>(&self, b: &'b Builder, p: LinksParameters<'b>) {
        let LinksParameters { next, targets, lengths, batch, most } = p;
        let index = self.0.index;
        let i = linear_id(b, index);
        let example = i / most;
        let position = i - example * most;
        b.if_(example.lt(batch), || {
            let count = lengths.load(batch + example).cast(index);
            b.if_(position.lt(count), || {
                let start = lengths.load(batch * 2 + example).cast(index);
                let label = targets.load(start + position);
                let (first, k) = (b.var(b.bool(true)), b.var(position.like(0.0)));
                b.while_(
                    || first.get() & k.get().lt(position),
                    || {
                        first.set(targets.load(start + k.get()).ne(label));
                        k.set(k.get() + 1);
                    },
                );
                let (found, k) = (b.var(b.bool(false)), b.var(position + 1));
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

/// The gradient of labels with states: of every label by the invocation of its first occurrence,
/// and of blank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LabelsSpec(Spec);

parameters! {
    LabelsSpec as s => LabelsArguments, LabelsParameters {
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
    let s = CtcScope { b, log_probs, targets, lengths, sizes };
    let most = sizes.states >> 1;
    let thread = linear_id(b, index);
    let row = thread / (most + 1);
    let position = thread - row * (most + 1);
    let frame = row / sizes.batch;
    let number = row - frame * sizes.batch;
    let of_blank = position.eq(most);
    b.if_(frame.lt(sizes.frames), || {
        let e = s.example(number);
        let nll = loss.load(number);
        let wanted = b.var(frame.lt(e.frames) & !nll.is_inf());
        b.if_(wanted.get() & !of_blank, || {
            wanted.set(position.lt(e.labels));
            b.if_(wanted.get(), || wanted.set(next.load(number * most + position).ge(0)));
        });
        b.if_(wanted.get(), || {
            let first = s.frame(&e, frame);
            let total = b.var(b.float(dtype.compute(), f64::NEG_INFINITY));
            // Even states from the first one for blank; odd states along the links for a label.
            let state = b.var(of_blank.select(position.like(0.0), 2 * position + 1));
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
            b.if_(!of_blank, || label.set(s.label(&e, 2 * position + 1)));
            let log_prob = s.log_prob(&e, frame, label.get());
            let value = math::exp(log_prob) - math::exp(total.get() + nll - log_prob);
            let at = (frame * sizes.batch + number) * sizes.labels + label.get();
            // An invalid label was read as blank, which has a separate invocation.
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
            accepted(&PaddingGradientSpec(spec.clone()).build());
            accepted(&NextEqualLabelSpec(spec.clone()).build());
            accepted(&LabelsSpec(spec).build());
        }
    }
}
