//! The margin loss with several classes per example: every class that is not a target against every
//! target, with a margin of 1. Each element of the gradient is computed separately.

use crate::loss::margin::problem::{check_dtypes, check_gradient, rows_of};
use crate::movement::copies::checked_copy;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::loss::margin::multilabel;
use dml_compute::loss::margin::problem::Problem;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::view::{Dims, View};

operators! {
    forward(self, target, reduction, outs) {
        "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
        "aten::multilabel_margin_loss_forward.output(Tensor self, Tensor target, int reduction, *, Tensor(a!) output, Tensor(b!) is_target) -> (Tensor(a!), Tensor(b!))",
    }
    backward(grad_output, self, target, reduction, is_target, out) {
        "aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
        "aten::multilabel_margin_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// Checks arguments as PyTorch does.
fn problem(call: &Call, input: &View, target: &View, reduction: i64) -> Result<Problem> {
    let [rows, classes] = rows_of(input)?;
    let fits = target.sizes == input.sizes || input.dim() < 2 && target.dim() < 2 && target.numel() == classes;
    check!(
        fits,
        Runtime,
        "inconsistent target size: {:?} for input of size: {:?}",
        target.sizes.as_slice(),
        input.sizes.as_slice()
    );
    check_dtypes("multilabel_margin_loss_forward_out_frame", input, target)?;
    Ok(Problem {
        input: as_contiguous(call, input)?,
        target: as_contiguous(call, target)?,
        weight: None,
        reduction: crate::loss::reduce::reduce_of(call, reduction)?,
        rows,
        classes,
        sizes: if input.dim() < 2 { Dims::new() } else { Dims::from_slice(&[rows]) },
    })
}

/// The classes of a row end before its first negative one.
fn forward(call: &mut Call, input: &View, target: &View, reduction: i64, outs: Outs) -> Result<()> {
    let p = problem(call, input, target, reduction)?;
    check_loop_iterations(call, 2 * p.classes)?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let out = call.result(given(0), p.input.dtype, &p.result_sizes())?;
    let flags = call.result(given(1), p.input.dtype, &p.target.sizes)?;
    let dense = if flags.is_contiguous() { flags.clone() } else { call.empty(flags.dtype, &flags.sizes)? };
    let losses = call.empty(accumulator(p.input.dtype), &[p.rows])?;
    multilabel::losses(call, &p, &dense, &losses)?;
    if dense.data != flags.data {
        checked_copy(call, &dense, &flags)?;
    }
    p.finish(call, &losses, &out)?;
    call.ret(out);
    call.ret(flags);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    target: &View,
    reduction: i64,
    is_target: &View,
    out: Out,
) -> Result<()> {
    let p = problem(call, input, target, reduction)?;
    check_loop_iterations(call, 2 * p.classes)?;
    let (grad, flags) = (as_contiguous(call, grad)?, as_contiguous(call, is_target)?);
    check_gradient(&p, &grad)?;
    check!(
        flags.sizes == p.target.sizes,
        Runtime,
        "inconsistent is_target size: {:?} for target of size: {:?}",
        flags.sizes.as_slice(),
        p.target.sizes.as_slice()
    );
    let out = call.result(out.given(), p.input.dtype, &p.input.sizes)?;
    let dense = if out.is_contiguous() { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    multilabel::gradient(call, &p, &grad, &flags, &dense)?;
    if dense.data != out.data {
        checked_copy(call, &dense, &out)?;
    }
    call.ret(out);
    Ok(())
}
