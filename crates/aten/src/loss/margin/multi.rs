//! The loss of one class an example: how far the scores of the other classes come within a margin
//! of its own.

use crate::loss::margin::problem::{check_dtypes, check_gradient, rows_of};
use crate::movement::copies::checked_copy;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::{structured, torch_version};
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::loss::margin::multi::{Arguments, BackwardArguments, BackwardSpec, ForwardSpec, Spec};
use dml_compute::loss::margin::problem::Problem;
use dml_compute::loss::reduce::Reduce;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    forward(self, target, p, margin, weight, reduction, out) {
        "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::multi_margin_loss.out(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, target, p, margin, weight, reduction, out) {
        "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor",
        "aten::multi_margin_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// Checks arguments as PyTorch does; `p` is the power of what comes within the margin: 1 or 2.
fn problem(call: &Call, input: &View, target: &View, p: f64, weight: Option<&View>, reduction: i64) -> Result<Problem> {
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

fn forward(
    call: &mut Call,
    input: &View,
    target: &View,
    power: f64,
    margin: f64,
    weight: Option<&View>,
    reduction: i64,
    out: Out,
) -> Result<()> {
    let p = problem(call, input, target, power, weight, reduction)?;
    let out = structured::result(call, out.given(), p.input.dtype, &p.result_sizes())?;
    let losses = call.empty(accumulator(p.input.dtype), &[p.rows])?;
    if p.rows > 0 {
        let (spec, extent) = (Spec::new(&p, power), p.extent());
        let arguments = Arguments {
            losses: &losses,
            input: &p.input,
            target: &p.target,
            weight: p.weight.as_ref(),
            fault: call.fault_of_index(),
            margin: Number::Double(margin),
            extent,
        };
        let groups = spec.rows.groups(&extent);
        call.run(&ForwardSpec(spec), &arguments, groups)?;
    }
    p.finish(call, &losses, &out)?;
    call.ret(out);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    target: &View,
    power: f64,
    margin: f64,
    weight: Option<&View>,
    reduction: i64,
    out: Out,
) -> Result<()> {
    let p = problem(call, input, target, power, weight, reduction)?;
    let grad = as_contiguous(call, grad)?;
    check_gradient(&p, &grad)?;
    let out = structured::result(call, out.given(), p.input.dtype, &p.input.sizes)?;
    let dense = if out.is_contiguous() { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    if p.rows > 0 {
        let (spec, extent) = (Spec::new(&p, power), p.extent());
        let arguments = BackwardArguments {
            out: &dense,
            grad: &grad,
            input: &p.input,
            target: &p.target,
            weight: p.weight.as_ref(),
            fault: call.fault_of_index(),
            margin: Number::Double(margin),
            part: Number::Double(1.0 / p.divisor()),
            extent,
        };
        let groups = spec.rows.groups(&extent);
        call.run(&BackwardSpec { of: spec, single: p.reduction != Reduce::None }, &arguments, groups)?;
    }
    if dense.data != out.data {
        checked_copy(call, &dense, &out)?;
    }
    call.ret(out);
    Ok(())
}
