//! log_sigmoid, of which PyTorch composes the losses that take logits.

use crate::operator::argument::{AnyTensor, Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operators;
use crate::pointwise::operator::{check_float, float_operator, operator, resized, strided};
use dml_compute::pointwise::activation as functions;
use dml_compute::view::View;
use dml_compute::view::layout::preserved_strides;

operators! {
    forward(self, outs) {
        "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
        "aten::log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!))",
    }
    backward(grad_output, self, out) {
        "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
        "aten::log_sigmoid_backward.grad_input(Tensor grad_output, Tensor self, Tensor buffer, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// The result is contiguous. The second result, a buffer for the gradient, is empty, as on CUDA.
fn forward(call: &mut Call, x: &View, outs: Outs) -> Result<()> {
    let given = outs.as_ref().map(|outs| outs[0]);
    if let Some(outs) = &outs {
        check_float(x, "log_sigmoid_cpu")?;
        structured::check_inputs([outs[1]], x.dtype)?;
    }
    let (mut result, mut larger, strides) = (None, None, View::contiguous_strides(&x.sizes));
    let out = given.map_or(Out::New, Out::Into);
    let out = strided(call, out, &mut result, x.dtype, (&x.sizes, &strides))?;
    let out = resized(call, out, &mut larger, (&x.sizes, &strides))?;
    float_operator(call, out, &functions::LOG_SIGMOID, &[AnyTensor(x)], &[])?;
    let buffer = match outs {
        Some(outs) => outs[1].clone(),
        None => call.empty(x.dtype, &[0])?,
    };
    call.ret(buffer);
    Ok(())
}

fn backward(call: &mut Call, grad: AnyTensor, x: AnyTensor, out: Out) -> Result<()> {
    let mut result = None;
    let out = strided(call, out, &mut result, grad.dtype, (&grad.sizes, &preserved_strides(&grad)))?;
    operator(call, out, &functions::LOG_SIGMOID_BACKWARD, &[grad, x], &[])
}
