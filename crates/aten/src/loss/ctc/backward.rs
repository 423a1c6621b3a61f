//! The gradient of the CTC loss by log-probabilities that came out of log_softmax (it is that of
//! log_softmax's input).

use crate::operator::argument::TensorOrInts;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::loss::ctc::backward::{
    LabelsArguments, LabelsSpec, LinksArguments, LinksSpec, RestArguments, RestSpec,
};
use dml_compute::loss::ctc::paths::walk;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::loops::check_turns;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    backward(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity) {
        "aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
        "aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    }
}

fn backward(
    call: &mut Call,
    grad: &View,
    log_probs: &View,
    targets: &View,
    input_lengths: TensorOrInts,
    target_lengths: TensorOrInts,
    loss: &View,
    alpha: &View,
    blank: i64,
    zero_infinity: bool,
) -> Result<()> {
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
    // Labels are followed from one to the next that is the same.
    check_turns(call, 2 * sizes.states)?;
    let out = call.empty(p.log_probs.dtype, &p.log_probs.sizes)?;
    if out.numel() > 0 {
        let (grad, loss, alpha) = (as_contiguous(call, grad)?, as_contiguous(call, loss)?, as_contiguous(call, alpha)?);
        let beta = p.paths(call)?;
        walk(call, &p, &beta, true)?;
        let arguments = RestArguments {
            out: &out,
            grad: &grad,
            loss: &loss,
            log_probs: &p.log_probs,
            lengths: &p.lengths,
            sizes,
            zero: u32::from(zero_infinity),
        };
        call.run_threads(&RestSpec(p.spec()), &arguments, out.numel() as u64)?;

        let most = (sizes.states - 1) / 2;
        let next = call.empty(DType::I64, &[sizes.batch, most])?;
        if most > 0 {
            let arguments =
                LinksArguments { next: &next, targets: &p.targets, lengths: &p.lengths, batch: sizes.batch, most };
            call.run_threads(&LinksSpec(p.spec()), &arguments, (sizes.batch * most) as u64)?;
        }
        let arguments = LabelsArguments {
            out: &out,
            grad: &grad,
            loss: &loss,
            alpha: &alpha,
            beta: &beta,
            next: &next,
            log_probs: &p.log_probs,
            targets: &p.targets,
            lengths: &p.lengths,
            sizes,
        };
        let threads = sizes.frames * sizes.batch * (most + 1);
        call.run_threads(&LabelsSpec(p.spec()), &arguments, threads as u64)?;
    }
    call.ret(out);
    Ok(())
}
