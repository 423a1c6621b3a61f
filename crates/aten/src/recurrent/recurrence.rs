//! The recurrence of one layer in one direction, and its gradient. What does not depend on other
//! steps is left to products over all of them: that of the input before it, and those of the
//! gradients by input and weights after.

use crate::matmul::product::multiply;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::recurrent::backward::{Backward, BackwardArguments};
use dml_compute::recurrent::forward::{Forward, ForwardArguments};
use dml_compute::recurrent::gates::Cell;
use dml_compute::recurrent::plan;
use dml_compute::recurrent::recurrence::launches;
use dml_compute::recurrent::steps::{Steps, Taken};
use dml_compute::recurrent::units::Recurrence;
use dml_compute::view::View;
use dml_compute::view::layout::index_type;
use dml_kernel::dense;

// Rows of `gates`, `output` and their like are steps of sequences: packed by `batch_sizes`, or,
// where there are none, sequence after sequence (`batch_first`) or step after step.
operators! {
    // States of every row, the states after the last step, and what the gradient needs.
    recurrence(gates, hx, cx, weight, bias, cell, batch_sizes, batch_first, reverse, keep) {
        "torch_dml::recurrence(Tensor gates, Tensor hx, Tensor? cx, Tensor weight, Tensor? bias, str cell, int[] batch_sizes, bool batch_first, bool reverse, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
    }
    // Gradients by the gates on the input's side and, of a GRU, on the hidden side; every row's
    // state before; gradients by `hx` and `cx`.
    recurrence_backward(grad_output, grad_hy, grad_cy, hx, cx, weight, output, kept, cell, batch_sizes, batch_first, reverse) {
        "torch_dml::recurrence_backward(Tensor grad_output, Tensor grad_hy, Tensor? grad_cy, Tensor hx, Tensor? cx, Tensor weight, Tensor output, Tensor kept, str cell, int[] batch_sizes, bool batch_first, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    }
}

/// Checks that a tensor has these sizes, and the dtype of another.
fn check_like(call: &Call, name: &str, t: &View, like: &View, sizes: &[i64]) -> Result<()> {
    check!(
        t.sizes[..] == *sizes && t.dtype == like.dtype,
        Runtime,
        "{}: expected {name} of size {sizes:?} and {}, but got {}",
        call.name,
        like.dtype,
        t.describe()
    );
    Ok(())
}

/// What is computed, and the steps: of `rows` rows from the states `hx` on.
fn checked(
    call: &Call,
    cell: Option<&str>,
    [hx, weight]: [&View; 2],
    cx: Option<&View>,
    rows: i64,
    order: (&[i64], bool, bool),
) -> Result<(Recurrence, Steps)> {
    let cell = Cell::of(cell)?;
    check!(hx.dtype.is_float(), Dtype, "\"{}\" not implemented for '{}'", call.name, hx.dtype);
    check!(hx.dim() == 2 && hx.numel() > 0, Runtime, "{}: expected states, but got {}", call.name, hx.describe());
    check!(rows > 0, Runtime, "Expected sequence length to be larger than 0 in RNN");
    let (batch, hidden, gates) = (hx.sizes[0], hx.sizes[1], i64::from(cell.gates()));
    check!(hidden < 1 << 20, NotImplemented, "{}: a hidden size of {hidden} is too large for dml", call.name);
    check!(batch < 1 << 31, NotImplemented, "{}: {batch} sequences are too many for dml", call.name);
    check_like(call, "a weight", weight, hx, &[gates * hidden, hidden])?;
    check!(cx.is_some() == cell.has_cell_state(), Runtime, "{}: expected a cell state of an LSTM alone", call.name);
    if let Some(cx) = cx {
        check_like(call, "a cell state", cx, hx, &hx.sizes)?;
    }
    let (batch_sizes, batch_first, reverse) = order;
    let steps = Steps::new(rows, batch, batch_sizes, batch_first, reverse)?;
    let widest = rows.max(batch) * hidden * i64::from(cell.gates().max(cell.kept()));
    let of = Recurrence { cell, dtype: hx.dtype, index: index_type(widest), hidden: hidden as u32, tile: None };
    Ok((of, steps))
}

#[allow(clippy::too_many_arguments)] // The schema's.
fn recurrence(
    call: &mut Call,
    gates: &View,
    hx: &View,
    cx: Option<&View>,
    weight: &View,
    bias: Option<&View>,
    cell: Option<&str>,
    batch_sizes: &[i64],
    batch_first: bool,
    reverse: bool,
    keep: bool,
) -> Result<()> {
    let rows = call.size_of(gates, 0)?;
    let (of, steps) = checked(call, cell, [hx, weight], cx, rows, (batch_sizes, batch_first, reverse))?;
    let (batch, hidden) = (hx.sizes[0], hx.sizes[1]);
    let wide = i64::from(of.cell.gates()) * hidden;
    check_like(call, "gates", gates, hx, &[rows, wide])?;
    if let Some(bias) = bias {
        check_like(call, "a bias", bias, hx, &[wide])?;
    }
    let [gates, hx] = [as_contiguous(call, gates)?, as_contiguous(call, hx)?];
    let cx = cx.map(|cx| as_contiguous(call, cx)).transpose()?;
    let bias = bias.map(|bias| as_contiguous(call, bias)).transpose()?;
    let keeps = keep && of.cell.kept() > 0;
    let output = call.empty(of.dtype, &[rows, hidden])?;
    let kept = call.empty(of.dtype, &[if keeps { rows } else { 0 }, i64::from(of.cell.kept()) * hidden])?;
    let last_h = call.empty(of.dtype, &[batch, hidden])?;
    let last_c = if of.cell.has_cell_state() { Some(call.empty(of.dtype, &[batch, hidden])?) } else { None };

    let launch = |of: Recurrence, product: &View, first: usize, count: usize, groups| {
        let began = first > 0;
        let arguments = ForwardArguments {
            steps: Taken { words: &steps.words(first, count), count, steps: &steps },
            gates: &gates,
            product,
            bias: bias.as_ref(),
            h: if began { &last_h } else { &hx },
            c: if began { last_c.as_ref() } else { cx.as_ref() },
            output: &output,
            kept: keeps.then_some(&kept),
            last_h: &last_h,
            last_c: last_c.as_ref(),
        };
        call.run(&Forward { of, biased: bias.is_some(), keeps }, &arguments, groups)
    };
    let transposed = weight.transpose(0, 1);
    // Transposed, it lies as it did or is a new tensor, whose address is a multiple of any access.
    let address = if transposed.is_contiguous() { weight.data } else { 0 };
    if let Some(found) = plan::plan(call, steps.batch(), [of.hidden, wide as u32], of.dtype, address) {
        let matrix = as_contiguous(call, &transposed)?;
        let of = Recurrence { tile: Some(found.tile), ..of };
        for (first, count) in launches(&steps, &found) {
            launch(of, &matrix, first, count, found.groups(steps.batch()))?;
        }
    } else {
        for i in 0..steps.count() {
            let active = i64::from(steps.active(i));
            let h = if i > 0 { &last_h } else { &hx };
            let product = multiply(call, &h.narrow(0, 0, active), &transposed, &[active, wide])?;
            launch(of, &product, i, 1, dense::groups((batch * hidden) as u64))?;
        }
    }
    call.ret(output);
    call.ret(last_h);
    call.ret_optional(last_c);
    call.ret(kept);
    Ok(())
}

#[allow(clippy::too_many_arguments)] // The schema's.
fn recurrence_backward(
    call: &mut Call,
    grad_output: &View,
    grad_hy: &View,
    grad_cy: Option<&View>,
    hx: &View,
    cx: Option<&View>,
    weight: &View,
    output: &View,
    kept: &View,
    cell: Option<&str>,
    batch_sizes: &[i64],
    batch_first: bool,
    reverse: bool,
) -> Result<()> {
    let rows = call.size_of(output, 0)?;
    let (of, steps) = checked(call, cell, [hx, weight], cx, rows, (batch_sizes, batch_first, reverse))?;
    let (batch, hidden) = (hx.sizes[0], hx.sizes[1]);
    let (wide, parts) = (i64::from(of.cell.gates()) * hidden, i64::from(of.cell.kept()));
    check_like(call, "a result", output, hx, &[rows, hidden])?;
    check_like(call, "a gradient", grad_output, hx, &[rows, hidden])?;
    check_like(call, "a gradient", grad_hy, hx, &hx.sizes)?;
    check!(grad_cy.is_some() == cx.is_some(), Runtime, "{}: expected the gradient of every state", call.name);
    if let Some(grad_cy) = grad_cy {
        check_like(call, "a gradient", grad_cy, hx, &hx.sizes)?;
    }
    let keeps = parts > 0;
    check_like(call, "what was kept", kept, hx, &[if keeps { rows } else { 0 }, parts * hidden])?;
    let contiguous = |t: &View| as_contiguous(call, t);
    let [hx, weight, output, kept] = [contiguous(hx)?, contiguous(weight)?, contiguous(output)?, contiguous(kept)?];
    let [grad_output, grad_hy] = [contiguous(grad_output)?, contiguous(grad_hy)?];
    let [cx, grad_cy] = [cx.map(contiguous).transpose()?, grad_cy.map(contiguous).transpose()?];
    let empty = |sizes: &[i64]| call.empty(of.dtype, sizes);
    let [grad_gates, before, first_h] = [empty(&[rows, wide])?, empty(&[rows, hidden])?, empty(&[batch, hidden])?];
    let grad_hidden = of.cell.has_sides().then(|| empty(&[rows, wide])).transpose()?;
    let first_c = of.cell.has_cell_state().then(|| empty(&[batch, hidden])).transpose()?;

    let launch =
        |of: Recurrence, product: &View, multiplied: Option<u32>, (first, count, end): (usize, usize, bool), groups| {
            let words = steps.words_back(first, count.max(1));
            let arguments = BackwardArguments {
                steps: Taken { words: &words, count, steps: &steps },
                multiplied,
                product,
                kept: keeps.then_some(&kept),
                output: &output,
                grad_output: &grad_output,
                h: &hx,
                c: cx.as_ref(),
                grad_h: if end { &grad_hy } else { &first_h },
                grad_c: if end { grad_cy.as_ref() } else { first_c.as_ref() },
                grad_gates: &grad_gates,
                grad_hidden: grad_hidden.as_ref(),
                before: &before,
                first_h: &first_h,
                first_c: first_c.as_ref(),
            };
            call.run(&Backward { of }, &arguments, groups)
        };
    if let Some(found) = plan::plan(call, steps.batch(), [wide as u32, of.hidden], of.dtype, weight.data) {
        let of = Recurrence { tile: Some(found.tile), ..of };
        for (first, count) in launches(&steps, &found).rev() {
            let end = first + count == steps.count();
            launch(of, &weight, None, (first, count, end), found.groups(steps.batch()))?;
        }
    } else {
        let groups = dense::groups((batch * hidden) as u64);
        let gradients = grad_hidden.as_ref().unwrap_or(&grad_gates);
        // The product of the step after, and the last launch has none of its own.
        let mut product: Option<View> = None;
        for i in (0..steps.count()).rev() {
            let end = i + 1 == steps.count();
            let multiplied = steps.active(i + 1);
            launch(of, product.as_ref().unwrap_or(&grad_hy), Some(multiplied), (i, 1, end), groups)?;
            let (active, (first, apart)) = (i64::from(steps.active(i)), steps.rows(i));
            let of_step = gradients.as_strided(&[active, wide], &[apart * wide, 1], first * wide);
            product = Some(multiply(call, &of_step, &weight, &[active, hidden])?);
        }
        if let Some(product) = product {
            launch(of, &product, Some(steps.active(0)), (0, 0, false), groups)?;
        }
    }
    call.ret(grad_gates);
    call.ret_optional(grad_hidden);
    call.ret(before);
    call.ret(first_h);
    call.ret_optional(first_c);
    Ok(())
}
