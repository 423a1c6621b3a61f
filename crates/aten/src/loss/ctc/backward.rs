//! The gradient of the CTC loss with respect to log-probabilities that log_softmax computed (it is
//! the gradient of log_softmax's input).

use crate::operator::argument::TensorOrInts;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, operators};
use dml_compute::loss::ctc::backward::gradient;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::view::View;

operators! {
    backward(grad, {Sequences}, neg_log_likelihood, log_alpha, zero_infinity) {
        "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
        "aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    }
}

group! {
    /// What the loss took.
    struct Sequences<'a> {
        log_probs: &'a View,
        targets: &'a View,
        input_lengths: TensorOrInts<'a>,
        target_lengths: TensorOrInts<'a>,
        blank: i64,
    }
}

fn backward(
    call: &mut Call,
    grad: &View,
    sequences: Sequences,
    loss: &View,
    alpha: &View,
    zero_infinity: bool,
) -> Result<()> {
    let Sequences { log_probs, targets, input_lengths, target_lengths, blank } = sequences;
    let p = crate::loss::ctc::problem::checked(call, log_probs, targets, input_lengths, target_lengths, blank)?;
    let sizes = p.sizes;
    check!(
        grad.numel() == sizes.batch
            && loss.numel() == sizes.batch
            && alpha.sizes.as_slice() == [sizes.batch, sizes.frames, sizes.states],
        Runtime,
        "ctc_loss: gradient {}, loss {} and log_alpha {} do not belong together",
        grad.describe(),
        loss.describe(),
        alpha.describe()
    );
    // The kernel follows the links between equal labels.
    check_loop_iterations(call, 2 * sizes.states)?;
    let out = call.empty(p.log_probs.dtype, &p.log_probs.sizes)?;
    if out.numel() > 0 {
        let (grad, loss, alpha) = (as_contiguous(call, grad)?, as_contiguous(call, loss)?, as_contiguous(call, alpha)?);
        gradient(call, &p, &grad, &loss, &alpha, zero_infinity, &out)?;
    }
    call.ret(out);
    Ok(())
}
