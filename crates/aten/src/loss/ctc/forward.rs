//! The CTC loss.

use crate::operator::argument::TensorOrInts;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::loss::ctc::forward::losses;
use dml_compute::view::View;

operators! {
    forward(log_probs, targets, input_lengths, target_lengths, blank) {
        "aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        "aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
    }
}

/// Returns the loss of each example, and `alpha`. PyTorch replaces an infinite loss outside of this
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
    let (loss, alpha) = (call.empty(p.log_probs.dtype, &[p.sizes.batch])?, p.paths(call)?);
    losses(call, &p, &loss, &alpha)?;
    call.ret(loss);
    call.ret(alpha);
    Ok(())
}
