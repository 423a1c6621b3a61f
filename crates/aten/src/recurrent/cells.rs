//! PyTorch's operators for one step of an LSTM's or a GRU's cells without the matrix products, and
//! their gradients.
//!
//! The gates of a row are adjacent, with `hidden` elements each. The layouts of the workspaces are
//! those of PyTorch's CUDA kernels.

use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy;
use dml_compute::recurrent::cells::{GRU_SAVED, Operand, Step, bias_gradient, cell, with_parts};
use dml_compute::view::View;
use smallvec::SmallVec;

operators! {
    lstm(input_gates, hidden_gates, cx, input_bias, hidden_bias) {
        hot "aten::_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)",
    }
    lstm_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias) {
        hot "aten::_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor)",
    }
    gru(input_gates, hidden_gates, hx, input_bias, hidden_bias) {
        hot "aten::_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor)",
    }
    gru_backward(grad_hy, workspace, has_bias) {
        hot "aten::_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    }
}

/// The operands of a forward cell, contiguous: gates of the input and of the hidden state, the
/// state, and both biases or none.
fn operands(
    call: &Call,
    gates: i64,
    [x, h, state]: [&View; 3],
    biases: [Option<&View>; 2],
) -> Result<SmallVec<[View; 5]>> {
    let name = call.name.strip_prefix("aten::").unwrap_or(call.name);
    check!(
        x.dim() == 2
            && x.sizes == h.sizes
            && state.dim() == 2
            && x.sizes[..] == [state.sizes[0], gates * state.sizes[1]],
        Runtime,
        "{name}: expected gates of size [batch, {gates} * hidden] and a state of size [batch, hidden], but got {:?}, \
         {:?} and {:?}",
        x.sizes.as_slice(),
        h.sizes.as_slice(),
        state.sizes.as_slice()
    );
    let mut all: SmallVec<[&View; 5]> = SmallVec::from_slice(&[x, h, state]);
    for bias in biases.into_iter().flatten() {
        check!(
            bias.sizes[..] == [x.sizes[1]],
            Runtime,
            "{name}: expected a bias of size [{}], but got {:?}",
            x.sizes[1],
            bias.sizes.as_slice()
        );
        all.push(bias);
    }
    check!(all.len() != 4, Runtime, "{name}: expected both biases or none");
    check!(x.dtype.is_float(), Dtype, "\"{name}\" not implemented for '{}'", x.dtype);
    for t in &all {
        check!(t.dtype == x.dtype, Runtime, "expected scalar type {} but found {}", x.dtype, t.dtype);
    }
    all.into_iter().map(|t| Ok(copy::as_contiguous(call, t)?)).collect()
}

fn lstm(
    call: &mut Call,
    input_gates: &View,
    hidden_gates: &View,
    cx: &View,
    input_bias: Option<&View>,
    hidden_bias: Option<&View>,
) -> Result<()> {
    let all = operands(call, 4, [input_gates, hidden_gates, cx], [input_bias, hidden_bias])?;
    let (x, cx) = (&all[0], &all[2]);
    let [hy, cy] = [call.empty(x.dtype, &cx.sizes)?, call.empty(x.dtype, &cx.sizes)?];
    let workspace = call.empty(x.dtype, &x.sizes)?;
    cell(call, Step::Lstm, &[(&hy, 1), (&cy, 1), (&workspace, 4)], &with_parts(&all, 4))?;
    for t in [hy, cy, workspace] {
        call.ret(t);
    }
    Ok(())
}

/// Returns the gradients of the gates, of `cx` and of the bias; nothing if there is no gradient of
/// the results.
fn lstm_backward(
    call: &mut Call,
    grad_hy: Option<&View>,
    grad_cy: Option<&View>,
    cx: &View,
    cy: &View,
    workspace: &View,
    has_bias: bool,
) -> Result<()> {
    if grad_hy.is_none() && grad_cy.is_none() {
        (0..3).for_each(|_| call.ret_value(Ret::None));
        return Ok(());
    }
    let grads: SmallVec<[&View; 2]> = grad_hy.into_iter().chain(grad_cy).collect();
    for t in grads.iter().chain([&cx, &cy]) {
        check_like(call, t, workspace, 4)?;
    }
    let all: Result<SmallVec<[View; 5]>> =
        [workspace, cx, cy].into_iter().chain(grads).map(|t| Ok(copy::as_contiguous(call, t)?)).collect();
    let all = all?;
    let inputs: SmallVec<[Operand; 5]> = all.iter().enumerate().map(|(i, t)| (t, if i == 0 { 4 } else { 1 })).collect();
    let grad_gates = call.empty(workspace.dtype, &workspace.sizes)?;
    let grad_cx = call.empty(cx.dtype, &cx.sizes)?;
    let step = Step::LstmGradient { hy: grad_hy.is_some(), cy: grad_cy.is_some() };
    cell(call, step, &[(&grad_gates, 4), (&grad_cx, 1)], &inputs)?;
    let bias = if has_bias { Some(bias_gradient(call, &grad_gates)?) } else { None };
    call.ret(grad_gates);
    call.ret(grad_cx);
    call.ret_optional(bias);
    Ok(())
}

fn gru(
    call: &mut Call,
    input_gates: &View,
    hidden_gates: &View,
    hx: &View,
    input_bias: Option<&View>,
    hidden_bias: Option<&View>,
) -> Result<()> {
    let all = operands(call, 3, [input_gates, hidden_gates, hx], [input_bias, hidden_bias])?;
    let (x, hx) = (&all[0], &all[2]);
    let hy = call.empty(x.dtype, &hx.sizes)?;
    let workspace = call.empty(x.dtype, &[hx.sizes[0], hx.sizes[1] * i64::from(GRU_SAVED)])?;
    cell(call, Step::Gru, &[(&hy, 1), (&workspace, GRU_SAVED)], &with_parts(&all, 3))?;
    call.ret(hy);
    call.ret(workspace);
    Ok(())
}

/// Returns the gradients of both sides' gates, of `hx` and of both biases.
fn gru_backward(call: &mut Call, grad: &View, workspace: &View, has_bias: bool) -> Result<()> {
    check_like(call, grad, workspace, i64::from(GRU_SAVED))?;
    let (grad, workspace) = (copy::as_contiguous(call, grad)?, copy::as_contiguous(call, workspace)?);
    let sizes = [grad.sizes[0], grad.sizes[1] * 3];
    let [x, h] = [call.empty(grad.dtype, &sizes)?, call.empty(grad.dtype, &sizes)?];
    let hx = call.empty(grad.dtype, &grad.sizes)?;
    let outs = [(&x, 3), (&h, 3), (&hx, 1)];
    cell(call, Step::GruGradient, &outs, &[(&workspace, GRU_SAVED), (&grad, 1)])?;
    let biases = if has_bias { [&x, &h].map(|t| Some(bias_gradient(call, t))) } else { [None, None] };
    for t in [x, h, hx] {
        call.ret(t);
    }
    for bias in biases {
        call.ret_optional(bias.transpose()?);
    }
    Ok(())
}

/// Checks that `t` is `[batch, hidden]` and the workspace `[batch, parts * hidden]`.
fn check_like(call: &Call, t: &View, workspace: &View, parts: i64) -> Result<()> {
    let fits = t.dim() == 2 && workspace.dim() == 2 && t.sizes[0] == workspace.sizes[0];
    check!(
        fits && t.sizes[1] * parts == workspace.sizes[1] && t.dtype == workspace.dtype && t.dtype.is_float(),
        Runtime,
        "{}: expected {parts} parts of {} in a workspace, but got {}",
        call.name,
        t.describe(),
        workspace.describe()
    );
    Ok(())
}
