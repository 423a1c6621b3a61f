//! The negative log-likelihood: for each target, or reduced.

use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operators;
use dml_compute::loss::nll::forward::{each, reduced};
use dml_compute::loss::nll::problem::Rank;
use dml_compute::loss::reduce::Reduce;
use dml_compute::movement::copy;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};

operators! {
    forward(self, target, weight, reduction, ignore_index, outs; Rank::Rows) {
        hot "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        "aten::nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    }
    forward(self, target, weight, reduction, ignore_index, outs; Rank::Images) {
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        "aten::nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    }
}

fn forward(
    call: &mut Call,
    input: &View,
    target: &View,
    weight: Option<&View>,
    reduction: i64,
    ignore: i64,
    outs: Outs,
    rank: Rank,
) -> Result<()> {
    let p = crate::loss::nll::problem::checked(call, rank, input, target, weight, reduction, ignore)?;
    let sizes = if p.reduction == Reduce::None { p.target.sizes.clone() } else { Dims::new() };
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let output = structured::result(call, given(0), p.input.dtype, &sizes)?;
    let total = structured::result(call, given(1), p.input.dtype, &[])?;
    if p.reduction == Reduce::None {
        each(call, &p, &output)?;
        copy::fill_with(call, &total, Number::Int(0))?;
    } else {
        reduced(call, &p, &output, &total)?;
    }
    call.ret(output);
    call.ret(total);
    Ok(())
}
