//! Convolution operators with other names and argument lists: the same kernels.

use crate::convolution::overrideable::{backward, forward};
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::convolution::geometry::Arguments;
use dml_compute::convolution::named::unsqueeze;
use dml_compute::view::View;

operators! {
    convolve(self, weight, kernel_size, bias, {Arguments}, out) {
        "aten::_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor",
        "aten::_slow_conv2d_forward.output(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, *, Tensor(a!) output) -> Tensor(a!)",
        "aten::slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor",
        "aten::slow_conv3d_forward.output(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding, *, Tensor(a!) output) -> Tensor(a!)",
    }
    convolve(self, weight, kernel_size, bias, {Arguments}, out) {
        "aten::slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "aten::slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
    }
    transposed(self, weight, kernel_size, bias, {Arguments}, out) {
        "aten::slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        "aten::slow_conv_transpose2d.out(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1], *, Tensor(a!) out) -> Tensor(a!)",
        "aten::slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1]) -> Tensor",
        "aten::slow_conv_transpose3d.out(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], *, Tensor(a!) out) -> Tensor(a!)",
    }
    depthwise(self, weight, kernel_size, bias, {Arguments}, out) {
        "aten::_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation) -> Tensor",
        "aten::_conv_depthwise2d.out(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, SymInt[3] stride, SymInt[3] padding, SymInt[3] dilation) -> Tensor",
    }
    slow_backward(grad_output, self, weight, kernel_size, {Arguments}, output_mask) {
        "aten::_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    }
    slow_backward_out(grad_output, self, weight, kernel_size, {Arguments}, outs) {
        "aten::_slow_conv2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, *, Tensor(a!) grad_input, Tensor(b!) grad_weight, Tensor(c!) grad_bias) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    }
}

/// A convolution in which every channel is a group.
fn depthwise(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    arguments: Arguments,
    out: Out,
) -> Result<()> {
    let batch = usize::from(input.dim() == weight.dim());
    let groups = input.sizes.get(batch).copied().unwrap_or(1);
    convolve(call, input, weight, kernel, bias, Arguments { groups, ..arguments }, out)
}

fn transposed(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    arguments: Arguments,
    out: Out,
) -> Result<()> {
    convolve(call, input, weight, kernel, bias, Arguments { transposed: true, ..arguments }, out)
}

fn convolve(
    call: &mut Call,
    input: &View,
    weight: &View,
    kernel: &[i64],
    bias: Option<&View>,
    arguments: Arguments,
    out: Out,
) -> Result<()> {
    check_kernel(call, weight, kernel)?;
    let single = input.dim() + 1 == weight.dim();
    let batched = if single { unsqueeze(input) } else { input.clone() };
    structured::check_given(out.given(), input.dtype)?;
    let mut result = forward(call, &batched, weight, bias, &arguments, None)?;
    if single {
        result = call.host.view(&result, &result.as_strided(&result.sizes[1..], &result.strides[1..], 0))?;
    }
    return_result(call, result, out.given())
}

/// Returns a result, in the `out=` argument if there is one.
fn return_result(call: &mut Call, result: View, given: Option<&View>) -> Result<()> {
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

fn slow_backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    kernel: &[i64],
    arguments: Arguments,
    wanted: &[u8],
) -> Result<()> {
    check_kernel(call, weight, kernel)?;
    for t in backward(call, [grad, input, weight], &arguments, wanted)? {
        call.ret_optional(t);
    }
    Ok(())
}

/// The overload with an `out=` tensor for every gradient.
fn slow_backward_out(
    call: &mut Call,
    grad: &View,
    input: &View,
    weight: &View,
    kernel: &[i64],
    arguments: Arguments,
    outs: Outs,
) -> Result<()> {
    check_kernel(call, weight, kernel)?;
    let gradients = backward(call, [grad, input, weight], &arguments, &[1, 1, 1])?;
    for (t, out) in gradients.into_iter().flatten().zip(outs.unwrap_or_default()) {
        return_result(call, t, Some(out))?;
    }
    Ok(())
}
