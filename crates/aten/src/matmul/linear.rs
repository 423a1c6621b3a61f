//! The gradients of a linear layer.

use crate::matmul::product::multiply;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_new;
use dml_compute::view::View;

operators! {
    backward(self, grad_output, weight, output_mask) {
        "aten::linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    }
}

/// The gradients of input, weight and bias that `wanted` asks for.
fn backward(call: &mut Call, input: &View, grad: &View, weight: &View, wanted: &[u8]) -> Result<()> {
    let rank = input.dim();
    check!(
        weight.dim() == 2
            && rank > 0
            && grad.dim() == rank
            && input.sizes[..rank - 1] == grad.sizes[..rank - 1]
            && [grad.sizes[rank - 1], input.sizes[rank - 1]] == weight.sizes[..],
        Runtime,
        "linear_backward: the sizes of input {:?}, gradient {:?} and weight {:?} do not match",
        input.sizes.as_slice(),
        grad.sizes.as_slice(),
        weight.sizes.as_slice()
    );
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let rows = |t: &View| -> Result<View> {
        let width = t.sizes[rank - 1];
        let count = input.sizes[..rank - 1].iter().product();
        Ok(copy::as_contiguous(call, t)?.as_strided(&[count, width], &[width, 1], 0))
    };
    let grads = rows(grad)?;
    let grad_input = if wants(0) { Some(multiply(call, &grads, weight, &input.sizes)?) } else { None };
    let grad_weight =
        if wants(1) { Some(multiply(call, &grads.transpose(0, 1), &rows(input)?, &weight.sizes)?) } else { None };
    let grad_bias = if wants(2) { Some(sum_new(call, &grads, Axes::of_dims(&[0], 2, false))?) } else { None };
    for t in [grad_input, grad_weight, grad_bias] {
        call.ret_optional(t);
    }
    Ok(())
}
