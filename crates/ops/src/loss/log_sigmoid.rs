//! log_sigmoid, of which PyTorch makes the losses that take logits.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{Out, Rule, operator};
use dml_kernel::math;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::log_sigmoid_forward", |c| forward(c, None)),
    op("aten::log_sigmoid_forward.output", |c| forward(c, Some(2))),
    op("aten::log_sigmoid_backward", |c| backward(c, Out::New)),
    op("aten::log_sigmoid_backward.grad_input", |c| backward(c, Out::Arg(3))),
];

/// `log_sigmoid_forward(self[, output, buffer]) -> (output, buffer)`; the buffer stays empty, as on CUDA.
fn forward(call: &mut Call, buffer: Option<usize>) -> Result<()> {
    let dtype = call.tensor(0)?.dtype;
    let out = if buffer.is_some() { Out::Arg(1) } else { Out::New };
    crate::pointwise::elementwise::check_float(call, 0, "log_sigmoid")?;
    operator(call, out, Rule::Promote, "log_sigmoid", &[0], &[], |_, v| {
        let x = v[0];
        x.gt(0.0).select(x.like(0.0), x) - math::log1p(math::exp(-x.abs()))
    })?;
    let buffer = match buffer {
        Some(i) => call.tensor(i)?.clone(),
        None => call.empty(dtype, &[0])?,
    };
    call.ret(buffer);
    Ok(())
}

/// `log_sigmoid_backward(grad_output, self, buffer[, grad_input])`
fn backward(call: &mut Call, out: Out) -> Result<()> {
    operator(call, out, Rule::Promote, "log_sigmoid_backward", &[0, 1], &[], |_, v| {
        let z = math::exp(-v[1].abs());
        let share = z / (z + 1.0);
        v[0] * v[1].lt(0.0).select(1.0 - share, share)
    })
}
