//! One layer of a recurrent network in one direction, and its gradients. Computations that do not
//! depend on other steps are products over all steps: of the input before the recurrence, and of
//! the gradients with respect to input and weights after it.

use crate::matmul::product::{Added, multiply, product};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, group, operators};
use dml_compute::movement::copy::{as_contiguous, device_copy};
use dml_compute::recurrent::gates::Cell;
use dml_compute::recurrent::recurrence;
use dml_compute::recurrent::steps::Steps;
use dml_compute::recurrent::{backward as gradients, forward as states};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_new;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;

// Rows of `input`, `output` and similar tensors are steps of sequences: packed by `batch_sizes`,
// or, without `batch_sizes`, sequence after sequence (`batch_first`) or step after step.
operators! {
    // Returns the states of every row, the states after the last step, and the values saved for the
    // gradient. Returns nothing for tensors that do not form such a layer.
    forward({Layer}, keep).declines() {
        "torch_dml::recurrent_layer(Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, str cell, int[] batch_sizes, bool batch_first, bool reverse, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
    }
    // Returns the requested gradients with respect to input, hx, cx, w_ih, w_hh, b_ih and b_hh.
    backward({Layer}, {Gradients}, output, kept, wanted).declines() {
        "torch_dml::recurrent_layer_backward(Tensor grad_output, Tensor grad_hy, Tensor? grad_cy, Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor output, Tensor kept, str cell, int[] batch_sizes, bool batch_first, bool reverse, bool[7] wanted) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    }
}

group! {
    /// A layer with its input and initial states.
    struct Layer<'a> {
        /// `[rows, width]`
        input: &'a View,
        /// `[batch, hidden]`
        hx: &'a View,
        /// As `hx`.
        cx: Option<&'a View>,
        /// `[gates * hidden, width]`
        w_ih: &'a View,
        /// `[gates * hidden, hidden]`
        w_hh: &'a View,
        /// `[gates * hidden]`
        b_ih: Option<&'a View> = None,
        /// `[gates * hidden]`
        b_hh: Option<&'a View> = None,
        cell: Option<&'a str>,
        batch_sizes: &'a [i64],
        batch_first: bool,
        reverse: bool,
    }
}

group! {
    /// Gradients of a layer's results.
    struct Gradients<'a> {
        /// `[rows, hidden]`
        grad_output: &'a View,
        /// `[batch, hidden]`
        grad_hy: &'a View,
        /// As `grad_hy`.
        grad_cy: Option<&'a View>,
    }
}

fn cell_named(name: Option<&str>) -> Result<Cell> {
    match name {
        Some("lstm") => Ok(Cell::Lstm),
        Some("gru") => Ok(Cell::Gru),
        Some("tanh") => Ok(Cell::Tanh),
        Some("relu") => Ok(Cell::Relu),
        _ => Err(Error::Runtime(format!("unknown recurrent cell: {name:?}"))),
    }
}

impl Layer<'_> {
    fn rows(&self) -> i64 {
        self.input.sizes[0]
    }

    fn hidden(&self) -> i64 {
        self.hx.sizes[1]
    }

    /// Number of gates of all units.
    fn wide(&self, cell: Cell) -> i64 {
        i64::from(cell.gates()) * self.hidden()
    }

    /// Whether the tensors have the dtypes and the sizes of a layer of these cells.
    fn fits(&self, cell: Cell) -> bool {
        let matrix = |t: &View| t.dim() == 2 && t.numel() > 0;
        if !self.input.dtype.is_float() || !matrix(self.input) || !matrix(self.hx) {
            return false;
        }
        let like = |t: &View, sizes: &[i64]| t.dtype == self.input.dtype && t.sizes[..] == *sizes;
        like(self.hx, &self.hx.sizes)
            && self.cx.is_some() == cell.has_cell_state()
            && self.cx.is_none_or(|cx| like(cx, &self.hx.sizes))
            && like(self.w_ih, &[self.wide(cell), self.input.sizes[1]])
            && like(self.w_hh, &[self.wide(cell), self.hidden()])
            && [self.b_ih, self.b_hh].iter().flatten().all(|bias| like(bias, &[self.wide(cell)]))
            && Steps::fit(self.rows(), self.hx.sizes[0], self.batch_sizes)
    }

    /// The steps.
    fn steps(&self, call: &Call) -> Result<Steps> {
        let (batch, hidden) = (self.hx.sizes[0], self.hidden());
        check!(hidden < 1 << 20, NotImplemented, "{}: a hidden size of {hidden} is too large for dml", call.name);
        check!(batch < 1 << 31, NotImplemented, "{}: {batch} sequences are too many for dml", call.name);
        Ok(Steps::new(self.rows(), batch, self.batch_sizes, self.batch_first, self.reverse)?)
    }

    /// The gates of all steps on the input's side.
    fn input_gates(&self, call: &Call) -> Result<View> {
        let (weight, sizes) = (self.w_ih.transpose(0, 1), [self.rows(), self.w_ih.sizes[0]]);
        let Some(bias) = self.b_ih else { return multiply(call, self.input, &weight, &sizes) };
        let added = Added { tensor: bias, beta: Scalar::Int(1), alpha: Scalar::Int(1) };
        call.result_of(|call| product(call, Out::New, [self.input, &weight], bias.dtype, &sizes, Some(added)))
    }
}

fn forward(call: &mut Call, layer: Layer, keep: bool) -> Result<()> {
    let cell = cell_named(layer.cell)?;
    if !layer.fits(cell) {
        call.decline(4);
        return Ok(());
    }
    let steps = layer.steps(call)?;
    let Layer { hx, cx, w_hh, b_hh, .. } = layer;
    let (rows, batch, hidden) = (layer.rows(), hx.sizes[0], layer.hidden());
    let gates = layer.input_gates(call)?;
    let hx = as_contiguous(call, hx)?;
    let cx = cx.map(|cx| as_contiguous(call, cx)).transpose()?;
    let bias = b_hh.map(|bias| as_contiguous(call, bias)).transpose()?;
    let saves = keep && cell.saved_values() > 0;
    let output = call.empty(hx.dtype, &[rows, hidden])?;
    let saved = call.empty(hx.dtype, &[if saves { rows } else { 0 }, i64::from(cell.saved_values()) * hidden])?;
    let last_h = call.empty(hx.dtype, &[batch, hidden])?;
    let last_c = if cell.has_cell_state() { Some(call.empty(hx.dtype, &[batch, hidden])?) } else { None };

    let operands = states::Operands {
        gates: &gates,
        bias: bias.as_ref(),
        h: &hx,
        c: cx.as_ref(),
        output: &output,
        saved: saves.then_some(&saved),
        last_h: &last_h,
        last_c: last_c.as_ref(),
    };
    recurrence::Layer { cell, steps, weight: w_hh }.run(call, &operands)?;
    call.ret(output);
    call.ret(last_h);
    call.ret_optional(last_c);
    call.ret(saved);
    Ok(())
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

fn backward(call: &mut Call, layer: Layer, grads: Gradients, output: &View, saved: &View, wanted: &[u8]) -> Result<()> {
    let cell = cell_named(layer.cell)?;
    check!(layer.fits(cell), Runtime, "{}: the tensors are not those of a layer", call.name);
    let steps = layer.steps(call)?;
    let Layer { input, hx, cx, w_ih, w_hh, .. } = layer;
    let Gradients { grad_output, grad_hy, grad_cy } = grads;
    let (rows, batch, hidden, wide) = (layer.rows(), hx.sizes[0], layer.hidden(), layer.wide(cell));
    let parts = i64::from(cell.saved_values());
    check_like(call, "a result", output, hx, &[rows, hidden])?;
    check_like(call, "a gradient", grad_output, hx, &[rows, hidden])?;
    check_like(call, "a gradient", grad_hy, hx, &hx.sizes)?;
    check!(grad_cy.is_some() == cx.is_some(), Runtime, "{}: expected the gradient of every state", call.name);
    if let Some(grad_cy) = grad_cy {
        check_like(call, "a gradient", grad_cy, hx, &hx.sizes)?;
    }
    let saves = parts > 0;
    check_like(call, "what was kept", saved, hx, &[if saves { rows } else { 0 }, parts * hidden])?;
    let contiguous = |t: &View| as_contiguous(call, t);
    let [hx, weight, output, saved] = [contiguous(hx)?, contiguous(w_hh)?, contiguous(output)?, contiguous(saved)?];
    let [grad_output, grad_hy] = [contiguous(grad_output)?, contiguous(grad_hy)?];
    let [cx, grad_cy] = [cx.map(contiguous).transpose()?, grad_cy.map(contiguous).transpose()?];
    let empty = |sizes: &[i64]| call.empty(hx.dtype, sizes);
    let [grad_gates, before, first_h] = [empty(&[rows, wide])?, empty(&[rows, hidden])?, empty(&[batch, hidden])?];
    let grad_hidden = cell.has_sides().then(|| empty(&[rows, wide])).transpose()?;
    let first_c = cell.has_cell_state().then(|| empty(&[batch, hidden])).transpose()?;

    let operands = gradients::Operands {
        saved: saves.then_some(&saved),
        output: &output,
        grad_output: &grad_output,
        h: &hx,
        c: cx.as_ref(),
        grad_h: &grad_hy,
        grad_c: grad_cy.as_ref(),
        grad_gates: &grad_gates,
        grad_hidden: grad_hidden.as_ref(),
        before: &before,
        first_h: &first_h,
        first_c: first_c.as_ref(),
    };
    recurrence::Layer { cell, steps, weight: &weight }.gradients(call, &operands)?;
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let of_hidden = grad_hidden.as_ref().unwrap_or(&grad_gates);
    let product =
        |i: usize, a: &View, b: &View, sizes: &[i64]| wants(i).then(|| multiply(call, a, b, sizes)).transpose();
    let sums = |t: &View| sum_new(call, t, Axes::of_dims(&[0], 2, false));
    let grad_input = product(0, &grad_gates, w_ih, &input.sizes)?;
    let grad_w_ih = product(3, &grad_gates.transpose(0, 1), input, &w_ih.sizes)?;
    let grad_w_hh = product(4, &of_hidden.transpose(0, 1), &before, &w_hh.sizes)?;
    let grad_b_ih = wants(5).then(|| sums(&grad_gates)).transpose()?;
    // Not the same tensor where both are equal: whoever is given the gradients may write to one.
    let grad_b_hh = match &grad_b_ih {
        _ if !wants(6) => None,
        Some(equal) if grad_hidden.is_none() => {
            let own = call.empty(equal.dtype, &equal.sizes)?;
            device_copy(call, equal, &own)?;
            Some(own)
        }
        _ => Some(sums(of_hidden)?),
    };
    let (first_h, first_c) = (Some(first_h).filter(|_| wants(1)), first_c.filter(|_| wants(2)));
    for gradient in [grad_input, first_h, first_c, grad_w_ih, grad_w_hh, grad_b_ih, grad_b_hh] {
        call.ret_optional(gradient);
    }
    Ok(())
}
