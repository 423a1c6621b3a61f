//! One step of an LSTM's or a GRU's cells, and its gradient, without the matrix products.
//!
//! The gates of a row are adjacent, each `hidden` elements. The layouts of the workspaces are those
//! of PyTorch's CUDA kernels.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::recurrent::gates::{Cell, State};
use crate::reduction::axes::Axes;
use crate::reduction::sum::sum_new;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Each, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Parts of a GRU's workspace: reset, update, new, the previous state, the hidden side of the new
/// gate.
pub const GRU_SAVED: u32 = 5;

/// Values by operand and part.
type OperandValues<'b> = [Vec<Value<'b>>];

/// A tensor of a cell and its number of parts: `[batch, parts * hidden]`, or `[parts * hidden]` for
/// a bias.
pub type Operand<'t> = (&'t View, u32);

/// The computation of one unit. The operands are as for [`cell`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// An LSTM's step: results `hy`, `cy` and the workspace; operands: the gates of the input and
    /// of the hidden state, `cx`, and both biases or none.
    Lstm,
    /// An LSTM's gradient: results: the gradients of the gates and of `cx`; operands: the
    /// workspace, `cx`, `cy`, and the gradients of the results.
    LstmGradient {
        /// The gradient of `hy` is given.
        hy: bool,
        /// The gradient of `cy` is given.
        cy: bool,
    },
    /// A GRU's step: results `hy` and the workspace; operands as for an LSTM's, with `hx` in place
    /// of `cx`.
    Gru,
    /// A GRU's gradient: results: the gradients of both sides' gates and of `hx`; operands: the
    /// workspace and the gradient of `hy`.
    GruGradient,
}

impl Step {
    /// The name of its kernels.
    fn name(self) -> &'static str {
        match self {
            Step::Lstm => "lstm_cell",
            Step::LstmGradient { hy: true, cy: true } => "lstm_cell_backward",
            Step::LstmGradient { hy: true, cy: false } => "lstm_cell_backward_hy",
            Step::LstmGradient { hy: false, .. } => "lstm_cell_backward_cy",
            Step::Gru => "gru_cell",
            Step::GruGradient => "gru_cell_backward",
        }
    }

    /// The parts of every output at one position, one after the other, from the parts of every
    /// input.
    fn results<'b>(self, v: &OperandValues<'b>) -> Vec<Value<'b>> {
        match self {
            Step::Lstm => {
                let before = State { h: v[2][0].like(0.0), c: Some(v[2][0]) };
                let (after, saved) = Cell::Lstm.step(&side(v, 0), &side(v, 1), before, |x| x);
                let mut values = vec![after.h, saved[4]];
                values.extend(&saved[..4]);
                values
            }
            Step::LstmGradient { hy, cy: of_cy } => {
                let (cx, cy) = (v[1][0], v[2][0]);
                let zero = cx.like(0.0);
                let grad = match (hy, of_cy) {
                    (true, true) => State { h: v[3][0], c: Some(v[4][0]) },
                    (true, false) => State { h: v[3][0], c: None },
                    (false, _) => State { h: zero, c: Some(v[3][0]) },
                };
                let saved: Vec<Value> = v[0].iter().copied().chain([cy]).collect();
                let found = Cell::Lstm.gradient(grad, &saved, zero, State { h: zero, c: Some(cx) });
                found.gates.into_iter().chain(found.before.c).collect()
            }
            Step::Gru => {
                let hx = v[2][0];
                let (after, saved) = Cell::Gru.step(&side(v, 0), &side(v, 1), State { h: hx, c: None }, |x| x);
                vec![after.h, saved[0], saved[1], saved[2], hx, saved[3]]
            }
            Step::GruGradient => {
                let ([r, z, n, hx, hidden], grad) = ([0, 1, 2, 3, 4].map(|part| v[0][part]), v[1][0]);
                let before = State { h: hx, c: None };
                let found = Cell::Gru.gradient(State { h: grad, c: None }, &[r, z, n, hidden], hx, before);
                found.gates.into_iter().chain(found.hidden).chain([found.before.h]).collect()
            }
        }
    }
}

/// Computes `outs` from `inputs`, all contiguous and of one dtype. Biases come last.
pub fn cell(cx: &Context, step: Step, outs: &[Operand], inputs: &[Operand]) -> Result<()> {
    let (first, parts) = outs[0];
    let (numel, hidden) = (first.numel() / i64::from(parts), first.size(-1) / i64::from(parts));
    if numel == 0 || cx.needs_no_kernel() {
        return Ok(());
    }
    let widest = outs.iter().chain(inputs).map(|(t, _)| t.numel()).max().unwrap_or(0);
    let part = |&(t, parts): &Operand| CellOperand { parts, bias: t.dim() == 1 };
    let spec = Spec {
        step,
        dtype: first.dtype,
        index: index_type(widest),
        outs: outs.iter().map(part).collect(),
        inputs: inputs.iter().map(part).collect(),
    };
    let [outs, inputs] = [outs, inputs].map(|list| list.iter().map(|operand| operand.0).collect());
    let arguments = Arguments { outs, inputs, numel, hidden };
    cx.run_threads(&spec, &arguments, numel as u64)
}

/// An operand in the kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct CellOperand {
    /// Number of adjacent parts.
    parts: u32,
    /// The same for every row.
    bias: bool,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    step: Step,
    dtype: DType,
    index: ScalarType,
    outs: SmallVec<[CellOperand; 3]>,
    inputs: SmallVec<[CellOperand; 5]>,
}

parameters! {
    Spec as s => Arguments, Parameters {
        outs: Each<Output> = smallvec![s.dtype; s.outs.len()],
        inputs: Each<Input> = smallvec![s.dtype; s.inputs.len()],
        numel: Index = s.index,
        hidden: Index = s.index,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        self.step.name()
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { outs, inputs, numel, hidden } = p;
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let row = i / hidden;
            let column = i - row * hidden;
            let offset = |parts: u32, part: u32| row * hidden * parts + hidden * part + column;
            let values: Vec<Vec<Value>> = inputs
                .iter()
                .zip(&self.inputs)
                .map(|(p, &CellOperand { parts, bias })| {
                    let at = |part: u32| if bias { hidden * part + column } else { offset(parts, part) };
                    (0..parts).map(|part| p.load(at(part))).collect()
                })
                .collect();
            let mut results = self.step.results(&values).into_iter();
            for (p, &CellOperand { parts, .. }) in outs.iter().zip(&self.outs) {
                for (part, value) in (0..parts).zip(&mut results) {
                    p.store(offset(parts, part), value);
                }
            }
        });
    }
}

/// The operands of a forward cell, each with its parts.
pub fn with_parts(all: &[View], gates: u32) -> SmallVec<[Operand<'_>; 5]> {
    all.iter().enumerate().map(|(i, t)| (t, if i == 2 { 1 } else { gates })).collect()
}

/// The sums of the gates of one side: its products, and its biases.
fn side<'b>(v: &OperandValues<'b>, side: usize) -> Vec<Value<'b>> {
    match v.get(3 + side) {
        Some(bias) => v[side].iter().zip(bias).map(|(&x, &bias)| x + bias).collect(),
        None => v[side].clone(),
    }
}

/// The sum over the batch.
pub fn bias_gradient(cx: &Context, gates: &View) -> Result<View> {
    sum_new(cx, gates, Axes::of_dims(&[0], 2, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        let part = |parts| CellOperand { parts, bias: false };
        let bias = |parts| CellOperand { parts, bias: true };
        let steps = [
            (Step::Lstm, vec![1, 1, 4], vec![part(4), part(4), part(1), bias(4), bias(4)]),
            (Step::LstmGradient { hy: true, cy: true }, vec![4, 1], vec![part(4), part(1), part(1), part(1), part(1)]),
            (Step::LstmGradient { hy: false, cy: true }, vec![4, 1], vec![part(4), part(1), part(1), part(1)]),
            (Step::LstmGradient { hy: true, cy: false }, vec![4, 1], vec![part(4), part(1), part(1), part(1)]),
            (Step::Gru, vec![1, GRU_SAVED], vec![part(3), part(3), part(1)]),
            (Step::GruGradient, vec![3, 3, 1], vec![part(GRU_SAVED), part(1)]),
        ];
        for (i, (step, outs, inputs)) in steps.into_iter().enumerate() {
            let dtype = [DType::F32, DType::BF16, DType::F64][i % 3];
            let index = [ScalarType::U32, ScalarType::U64][i % 2];
            let spec = Spec { step, dtype, index, outs: outs.into_iter().map(part).collect(), inputs: inputs.into() };
            crate::primitives::validate::accepted(&spec.build());
        }
    }
}
