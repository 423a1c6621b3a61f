//! PyTorch's operators of one step of an LSTM's or a GRU's cells, and of its gradient: all but the
//! matrix products.
//!
//! Gates of a row stand side by side, each `hidden` elements. The layouts of the workspaces are
//! those of PyTorch's CUDA kernels.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, Output};
use crate::reduction::axes::Axes;
use crate::reduction::sum::add_up;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Each, Index};
use dml_engine::{Family, Interface, parameters};
use dml_kernel::dense::{self, GROUP, linear_id};
use dml_kernel::{Builder, DType, Kernel, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// What the gates' workspace of a GRU holds: reset, update, new, the old state, the hidden side of
/// the new gate.
pub const GRU_SAVED: u32 = 5;

/// Values by operand and part.
type Parts<'b> = [Vec<Value<'b>>];

/// A tensor of a cell and its number of parts: `[batch, parts * hidden]`, or `[parts * hidden]` for
/// a bias.
pub type Operand<'t> = (&'t View, u32);

/// Computes `outs` from `inputs`, all contiguous and of one dtype. `body` gets the parts of every
/// input at one place and returns those of every output, one after the other. Biases come last;
/// `family` says what is there.
pub fn cell(
    cx: &Context,
    family: &'static str,
    outs: &[Operand],
    inputs: &[Operand],
    body: &dyn for<'b> Fn(&Parts<'b>) -> Vec<Value<'b>>,
) -> Result<()> {
    let (first, parts) = outs[0];
    let (numel, hidden) = (first.numel() / i64::from(parts), first.size(-1) / i64::from(parts));
    if numel == 0 || cx.infers() {
        return Ok(());
    }
    let widest = outs.iter().chain(inputs).map(|(t, _)| t.numel()).max().unwrap_or(0);
    let part = |&(t, parts): &Operand| Part { parts, bias: t.dim() == 1 };
    let spec = Spec {
        family: Family(family),
        dtype: first.dtype,
        index: index_type(widest),
        outs: outs.iter().map(part).collect(),
        inputs: inputs.iter().map(part).collect(),
    };
    let kernel = cx.device.kernel(&spec, || spec.build(body))?;
    let [outs, inputs] = [outs, inputs].map(|list| list.iter().map(|operand| operand.0).collect());
    let arguments = Arguments { outs, inputs, numel, hidden };
    let groups = dense::groups(numel as u64);
    cx.enqueue(kernel, &spec, &arguments, groups)
}

/// An operand in the kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Part {
    /// How many stand side by side.
    parts: u32,
    /// The same for every row.
    bias: bool,
}

/// Everything that changes the code. The family says what is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    family: Family,
    dtype: DType,
    index: ScalarType,
    outs: SmallVec<[Part; 3]>,
    inputs: SmallVec<[Part; 5]>,
}

parameters! {
    Spec as s => Arguments, Parameters {
        outs: Each<Output> = smallvec![s.dtype; s.outs.len()],
        inputs: Each<Input> = smallvec![s.dtype; s.inputs.len()],
        numel: Index = s.index,
        hidden: Index = s.index,
    }
}

impl Spec {
    fn build(&self, body: &dyn for<'b> Fn(&Parts<'b>) -> Vec<Value<'b>>) -> Kernel {
        let b = Builder::new(self.family.0, [GROUP, 1, 1]);
        let Parameters { outs, inputs, numel, hidden } = self.declare(&b);
        let i = linear_id(&b, self.index);
        b.if_(i.lt(numel), || {
            let row = i / hidden;
            let column = i - row * hidden;
            let place = |parts: u32, part: u32| row * hidden * parts + hidden * part + column;
            let values: Vec<Vec<Value>> = inputs
                .iter()
                .zip(&self.inputs)
                .map(|(p, &Part { parts, bias })| {
                    let at = |part: u32| if bias { hidden * part + column } else { place(parts, part) };
                    (0..parts).map(|part| p.load(at(part))).collect()
                })
                .collect();
            let mut results = body(&values).into_iter();
            for (p, &Part { parts, .. }) in outs.iter().zip(&self.outs) {
                for (part, value) in (0..parts).zip(&mut results) {
                    p.store(place(parts, part), value);
                }
            }
        });
        b.finish()
    }
}

/// The operands of a forward cell, each with its parts.
pub fn with_parts(all: &[View], gates: u32) -> SmallVec<[Operand<'_>; 5]> {
    all.iter().enumerate().map(|(i, t)| (t, if i == 2 { 1 } else { gates })).collect()
}

/// The sums of the gates of one side: its products, and its biases.
pub fn side<'b>(v: &Parts<'b>, side: usize) -> Vec<Value<'b>> {
    match v.get(3 + side) {
        Some(bias) => v[side].iter().zip(bias).map(|(&x, &bias)| x + bias).collect(),
        None => v[side].clone(),
    }
}

/// The sum over the batch.
pub fn bias_gradient(cx: &Context, gates: &View) -> Result<View> {
    add_up(cx, gates, Axes::listed(&[0], 2, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_kernel::math;

    #[test]
    fn kernels_are_valid() {
        let part = |parts, bias| Part { parts, bias };
        for (dtype, index) in
            [(DType::F32, ScalarType::U32), (DType::BF16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            let spec = Spec {
                family: Family("cell"),
                dtype,
                index,
                outs: smallvec![part(2, false)],
                inputs: smallvec![part(4, false), part(1, false), part(4, true)],
            };
            let kernel = spec.build(&|v| vec![math::sigmoid(v[0][3]) * v[1][0], math::tanh(v[2][1])]);
            crate::primitives::validate::accepted(&kernel);
        }
    }
}
