//! The CTC loss.

use super::paths::walk;
use super::problem::{Problem, SizesOf, Spec};
use super::states::log_sum;
use crate::movement::copy::fill_with;
use crate::operator::argument::TensorOrInts;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operators;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::tensor::Tensor;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

operators! {
    forward(log_probs, targets, input_lengths, target_lengths, blank) {
        "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        "aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
    }
}

/// The loss of each example, and `alpha`. An infinite loss is replaced by PyTorch, outside of this operator.
fn forward(
    call: &mut Call,
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: TensorOrInts,
    target_lengths: TensorOrInts,
    blank: i64,
) -> Result<()> {
    let p = Problem::new(call, log_probs, targets, input_lengths, target_lengths, blank)?;
    let batch = p.sizes.batch;
    let (loss, alpha) = (call.empty(p.log_probs.dtype, &[batch])?, p.paths(call)?);
    fill_with(call, &alpha, Number::Double(f64::NEG_INFINITY))?;
    walk(call, &p, &alpha, false)?;
    if batch > 0 {
        let arguments = Arguments { loss: &loss, alpha: &alpha, lengths: &p.lengths, sizes: p.sizes };
        call.run_threads(&LossSpec(p.spec()), &arguments, batch as u64)?;
    }
    call.ret(loss);
    call.ret(alpha);
    Ok(())
}

/// The ways that end in one of the last two states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LossSpec(Spec);

parameters! {
    LossSpec as s => Arguments, Parameters {
        loss: Output = s.0.dtype,
        alpha: Input = s.0.dtype,
        lengths: Input = DType::I64,
        sizes: SizesOf = s.0.index,
    }
}

impl KernelSpec for LossSpec {
    fn name(&self) -> &'static str {
        "ctc_loss"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { loss, alpha, lengths, sizes } = p;
        let Spec { dtype, index, .. } = self.0;
        let i = linear_id(b, index);
        b.if_(i.lt(sizes.batch), || {
            let (own, labels) = (lengths.load(i).cast(index), lengths.load(sizes.batch + i).cast(index));
            let none = b.float(dtype.compute(), f64::NEG_INFINITY);
            let (last, before) = (b.var(none), b.var(none));
            b.if_else(
                own.eq(0),
                // No frames spell no labels.
                || b.if_(labels.eq(0), || last.set(0.0)),
                || {
                    let at = (i * sizes.frames + own - 1) * sizes.states + 2 * labels;
                    last.set(alpha.load(at));
                    b.if_(labels.gt(0), || before.set(alpha.load(at - 1)));
                },
            );
            loss.store(i, -log_sum(&[last.get(), before.get()]));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&LossSpec(Spec { dtype, targets: DType::I64, index }).build());
        }
    }
}
