//! The multi-class margin loss with one class per example: the hinge terms of the other classes'
//! scores against the target's score.

use crate::loss::margin::problem::{check_dtypes, check_gradient, rows_of};
use crate::movement::copies::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::{structured, torch_version};
use crate::{check, group, operators};
use dml_compute::dtype::accumulator;
use dml_compute::loss::margin::multi;
use dml_compute::loss::margin::problem::Problem;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::view::View;

operators! {
    forward(self, target, {Margin}, out) {
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::multi_margin_loss.out(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, {Margin}, out) {
        "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::multi_margin_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

group! {
    /// What a loss takes beside scores and targets.
    struct Margin<'a> {
        /// The power of the hinge terms: 1 or 2.
        p: f64,
        margin: f64,
        weight: Option<&'a View>,
        reduction: i64,
    }
}

/// Checks arguments as PyTorch does.
fn problem(call: &Call, input: &View, target: &View, given: &Margin) -> Result<Problem> {
    let Margin { p, weight, reduction, .. } = *given;
    check!(p == 1.0 || p == 2.0, Runtime, "only p == 1 and p == 2 supported");
    let [rows, classes] = rows_of(input)?;
    if target.dim() > 1 || target.numel() != rows {
        let (given, scores) = (target.sizes.as_slice(), input.sizes.as_slice());
        let words = if torch_version::at_least(15) {
            format!(
                "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch \
                 size). Expected target size [{rows}], but got {given:?}. Input has shape {scores:?}."
            )
        } else {
            format!("inconsistent target size, expected {rows} but got {given:?}")
        };
        return Err(Error::Runtime(words));
    }
    if let Some(w) = weight {
        check!(
            w.dim() <= 1 && w.numel() == classes,
            Runtime,
            "inconsistent weight size, expected {classes} but got {:?}",
            w.sizes.as_slice()
        );
    }
    check_dtypes("multi_margin_loss_cpu_kernel", input, target)?;
    if let Some(w) = weight {
        check!(w.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, w.dtype);
    }
    Ok(Problem {
        input: as_contiguous(call, input)?,
        target: as_contiguous(call, target)?,
        weight: weight.map(|w| as_contiguous(call, w)).transpose()?,
        reduction: crate::loss::reduce::reduce_of(call, reduction)?,
        rows,
        classes,
        sizes: target.sizes.clone(),
    })
}

fn forward(call: &mut Call, input: &View, target: &View, given: Margin, out: Out) -> Result<()> {
    let p = problem(call, input, target, &given)?;
    let out = structured::result(call, out.given(), p.input.dtype, &p.result_sizes())?;
    let losses = call.empty(accumulator(p.input.dtype), &[p.rows])?;
    multi::losses(call, &p, given.p, given.margin, &losses)?;
    p.finish(call, &losses, &out)?;
    call.ret(out);
    Ok(())
}

fn backward(call: &mut Call, grad: &View, input: &View, target: &View, given: Margin, out: Out) -> Result<()> {
    let p = problem(call, input, target, &given)?;
    let grad = as_contiguous(call, grad)?;
    check_gradient(&p, &grad)?;
    let out = structured::result(call, out.given(), p.input.dtype, &p.input.sizes)?;
    let dense = if out.is_contiguous() { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    multi::gradient(call, &p, given.p, given.margin, &grad, &dense)?;
    if dense.data != out.data {
        checked_copy(call, &dense, &out)?;
    }
    call.ret(out);
    Ok(())
}
