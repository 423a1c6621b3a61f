//! The gradient of the negative log-likelihood.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, group, operators};
use dml_compute::loss::nll::backward::gradient;
use dml_compute::loss::nll::problem::Rank;
use dml_compute::loss::reduce::Reduce;
use dml_compute::movement::copy;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;

operators! {
    backward(grad_output, self, {Options}, total_weight, out; Rank::Rows) {
        hot "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    backward(grad_output, self, {Options}, total_weight, out; Rank::Images) {
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

group! {
    /// What the loss took beside its input.
    struct Options<'a> {
        target: &'a View,
        weight: Option<&'a View>,
        reduction: i64,
        ignore_index: i64,
    }
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    options: Options,
    total_weight: &View,
    out: Out,
    rank: Rank,
) -> Result<()> {
    let Options { target, weight, reduction, ignore_index: ignore } = options;
    let p = crate::loss::nll::problem::checked(call, rank, input, target, weight, reduction, ignore)?;
    if p.reduction == Reduce::None {
        check!(
            grad.sizes == p.target.sizes || grad.numel() == p.target.numel(),
            Runtime,
            "Expected a tensor of shape {:?} for grad_output, but got {:?}",
            p.target.sizes.as_slice(),
            grad.sizes.as_slice()
        );
    } else {
        check!(
            grad.numel() == 1,
            Runtime,
            "Expected a single element grad_output tensor, but got: {:?}",
            grad.sizes.as_slice()
        );
    }
    let grad = copy::as_contiguous(call, grad)?;
    let result = structured::result(call, out.given(), p.input.dtype, &p.input.sizes)?;
    if result.numel() > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(result.dtype, &result.sizes)? };
        copy::fill_with(call, &dense, Scalar::Int(0))?;
        gradient(call, &p, &grad, total_weight, &dense)?;
        if dense.data != result.data {
            crate::movement::copies::checked_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}
