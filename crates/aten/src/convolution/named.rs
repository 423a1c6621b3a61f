//! The convolutions that PyTorch calls by a name of their own: the same kernels under other
//! argument lists.

use crate::convolution::overrideable::{backward, forward};
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::convolution::geometry::Arguments;
use dml_compute::convolution::named::{Operands, PLAIN, unsqueeze};
use dml_compute::view::View;

operators! {
    plain(self, weight, kernel_size, bias, stride, padding, out) {
        "aten::_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor",
        "aten::_slow_conv2d_forward.output(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, *, Tensor(a!) output) -> Tensor(a!)",
        "aten::slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor",
        "aten::slow_conv3d_forward.output(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding, *, Tensor(a!) output) -> Tensor(a!)",
    }
    dilated(self, weight, kernel_size, bias, stride, padding, dilation, out) {
        "aten::slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "aten::slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
    }
    transposed(self, weight, kernel_size, bias, stride, padding, output_padding, dilation, out) {
        "aten::slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "aten::slow_conv_transpose2d.out(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1], *, Tensor(a!) out) -> Tensor(a!)",
        "aten::slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        "aten::slow_conv_transpose3d.out(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], *, Tensor(a!) out) -> Tensor(a!)",
    }
    depthwise(self, weight, kernel_size, bias, stride, padding, dilation, out) {
        "aten::_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation) -> Tensor",
        "aten::_conv_depthwise2d.out(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding, SymInt[3] dilation) -> Tensor",
    }
    slow_backward(grad_output, self, weight, kernel_size, stride, padding, output_mask) {
        "aten::_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    }
    slow_backward_out(grad_output, self, weight, kernel_size, stride, padding, outs) {
        "aten::_slow_conv2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, *, Tensor(a!) grad_input, Tensor(b!) grad_weight, Tensor(c!) grad_bias) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    }
}

#[allow(clippy::too_many_arguments)]
fn plain(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    stride: &[i64],
    padding: &[i64],
    out: Out,
) -> Result<()> {
    named(call, (input, weight, kernel, bias), Arguments { stride, padding, ..PLAIN }, out)
}

#[allow(clippy::too_many_arguments)]
fn dilated(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    out: Out,
) -> Result<()> {
    named(call, (input, weight, kernel, bias), Arguments { stride, padding, dilation, ..PLAIN }, out)
}

/// Every channel is a group.
#[allow(clippy::too_many_arguments)]
fn depthwise(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    out: Out,
) -> Result<()> {
    let batch = usize::from(input.dim() == weight.dim());
    let groups = input.sizes.get(batch).copied().unwrap_or(1);
    named(call, (input, weight, kernel, bias), Arguments { stride, padding, dilation, groups, ..PLAIN }, out)
}

#[allow(clippy::too_many_arguments)]
fn transposed(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    stride: &[i64],
    padding: &[i64],
    output_padding: &[i64],
    dilation: &[i64],
    out: Out,
) -> Result<()> {
    let arguments = Arguments { stride, padding, dilation, transposed: true, output_padding, ..PLAIN };
    named(call, (input, weight, kernel, bias), arguments, out)
}

fn named(call: &mut Call, operands: Operands, arguments: Arguments, out: Out) -> Result<()> {
    let (input, weight, kernel, bias) = operands;
    check_kernel(call, weight, kernel)?;
    let single = input.dim() + 1 == weight.dim();
    let batched = if single { unsqueeze(input) } else { input.clone() };
    structured::check_given(out.given(), input.dtype)?;
    let mut result = forward(call, &batched, weight, bias, &arguments)?;
    if single {
        result = call.host.view(&result, &result.as_strided(&result.sizes[1..], &result.strides[1..], 0))?;
    }
    deliver(call, result, out.given())
}

/// Returns a result, by way of its `out=` argument if there is one.
fn deliver(call: &mut Call, result: View, given: Option<&View>) -> Result<()> {
    let out = match given {
        None => result,
        Some(_) => {
            let out = structured::result(call, given, result.dtype, &result.sizes)?;
            crate::movement::copies::checked_copy(call, &result, &out)?;
            out
        }
    };
    call.ret(out);
    Ok(())
}

fn check_kernel(call: &Call, weight: &View, kernel: &[i64]) -> Result<()> {
    let given = weight.sizes.get(2..).unwrap_or_default();
    check!(
        given.iter().enumerate().all(|(d, n)| kernel.get(d).or(kernel.first()) == Some(n)),
        Runtime,
        "{}: kernel_size {kernel:?} does not match the weight's size {:?}",
        call.name,
        weight.sizes.as_slice()
    );
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn slow_backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    wanted: &[u8],
) -> Result<()> {
    check_kernel(call, weight, kernel)?;
    for t in backward(call, [grad, input, weight], &Arguments { stride, padding, ..PLAIN }, wanted)? {
        call.ret_optional(t);
    }
    Ok(())
}

/// The overload with a tensor for every gradient.
#[allow(clippy::too_many_arguments)]
fn slow_backward_out(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    outs: Outs,
) -> Result<()> {
    check_kernel(call, weight, kernel)?;
    let gradients = backward(call, [grad, input, weight], &Arguments { stride, padding, ..PLAIN }, &[1, 1, 1])?;
    for (t, out) in gradients.into_iter().flatten().zip(outs.unwrap_or_default()) {
        deliver(call, t, Some(out))?;
    }
    Ok(())
}
