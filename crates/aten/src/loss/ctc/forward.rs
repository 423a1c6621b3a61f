//! The CTC loss.

use crate::operator::argument::TensorOrInts;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::loss::ctc::forward::{Arguments, LossSpec};
use dml_compute::loss::ctc::paths::walk;
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    forward(log_probs, targets, input_lengths, target_lengths, blank) {
        "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        "aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
    }
}

/// The loss of each example, and `alpha`. An infinite loss is replaced by PyTorch, outside of this
/// operator.
fn forward(
    call: &mut Call,
    log_probs: &View,
    targets: &View,
    input_lengths: TensorOrInts,
    target_lengths: TensorOrInts,
    blank: i64,
) -> Result<()> {
    let p = crate::loss::ctc::problem::checked(call, log_probs, targets, input_lengths, target_lengths, blank)?;
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
