//! Fused optimizer steps: one launch reads and writes all parameters and their states.

use crate::context::Context;
use crate::error::Result;
use crate::lists::multi_tensor;
use crate::lists::multi_tensor::batch::Row;
use crate::pointwise::division::DIV;
use crate::pointwise::kernel::{Input, Operand};
use crate::view::View;
use dml_kernel::Value;
use smallvec::SmallVec;

/// What the weight decay changes.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Decay {
    /// The gradient, as in Adam.
    Gradient,
    /// The parameter itself, as in AdamW.
    Parameter,
}

/// One parameter's results, which are inputs as well, and its other inputs: the gradient comes
/// second.
pub fn row<'t>(outs: &[&'t View], grad: &'t View, others: &[&'t View]) -> Row<'t> {
    let inputs = std::iter::once(outs[0]).chain([grad]).chain(outs[1..].iter().copied()).chain(others.iter().copied());
    Row { outs: SmallVec::from_slice(outs), inputs: inputs.map(Operand::Tensor).collect(), common: outs[0].dtype }
}

/// Divides the gradients by the loss scale, in place as on CPU.
pub fn unscale(cx: &Context, grads: &[&View], scale: Option<&View>) -> Result<()> {
    let Some(scale) = scale else { return Ok(()) };
    let rows: Vec<Row> = grads.iter().map(|&grad| Row::in_place(grad)).collect();
    multi_tensor::run(cx, (&DIV).into(), &rows, &[Input::Tensor(scale.clone())])
}

/// The gradient with the weight decay, which is only called where there is one: 0 times an infinite
/// parameter is NaN.
pub(super) fn decayed<'b>(grad: Value<'b>, weight_decay: Value<'b>, p: Value<'b>) -> Value<'b> {
    grad + weight_decay * p
}

/// The values from before in place of the results, if `found` is not 0: a parameter's, then (after
/// the gradient) its state's.
pub(super) fn skip_where<'b>(found: Value<'b>, results: &mut [Value<'b>], before: &[Value<'b>]) {
    let skip = found.ne(0);
    for (i, result) in results.iter_mut().enumerate() {
        *result = skip.select(before[if i == 0 { 0 } else { i + 1 }], *result);
    }
}
