//! avg_pool2d and avg_pool3d.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::spatial::geometry::{check_dimension, result};
use crate::spatial::pooling::window::{check_image, check_sizes, output_sizes};
use crate::{check, operators};
use dml_compute::primitives::loops::check_turns;
use dml_compute::spatial::geometry::{batched, index_type};
use dml_compute::spatial::pooling::average::{Arguments, Divisor, Spec, keeps_channels_last, name};
use dml_compute::spatial::pooling::cover::{Cover, CoverArgument};
use dml_compute::spatial::pooling::window::{WindowArguments, Windows, spatial};
use dml_compute::view::View;
use dml_compute::view::memory_format::is_channels_last;
use dml_kernel::DType;

operators! {
    forward(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out; 2) {
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out; 2) {
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "aten::avg_pool2d_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out; 3) {
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "aten::avg_pool3d.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out; 3) {
        "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "aten::avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// A pooling: its windows, and what their sums are divided by.
struct Pooling {
    windows: Windows,
    divisor: Divisor,
    /// Of [`Divisor::Given`].
    given: i64,
}

impl Pooling {
    fn new(given: &WindowArguments, count_include_pad: bool, divisor: Option<i64>, rank: usize) -> Result<Pooling> {
        let windows = crate::spatial::pooling::window::checked(name(rank), rank, given)?;
        check!(divisor != Some(0), Runtime, "divisor must be not zero");
        let kind = match divisor {
            Some(_) => Divisor::Given,
            None if count_include_pad => Divisor::Window,
            None => Divisor::Input,
        };
        Ok(Pooling { windows, divisor: kind, given: divisor.unwrap_or(0) })
    }
}

fn check_input(input: &View, windows: &Windows) -> Result<()> {
    let rank = windows.rank();
    if rank == 2 {
        check_dimension(input, -3)?;
    }
    check_image("avg_pool3d", input, rank)?;
    check!(
        input.dtype.is_float() || input.dtype == DType::I64,
        NotImplemented,
        "\"{}{}\" not implemented for '{}'",
        name(rank),
        if rank == 3 { "_out_frame" } else { "" },
        input.dtype
    );
    if let ([t, h, w], [kt, kh, kw]) = (spatial(input, rank), windows.kernel.as_slice()) {
        check!(
            t >= kt && h >= kh && w >= kw,
            Runtime,
            "input image (T: {t} H: {h} W: {w}) smaller than kernel size (kT: {kt} kH: {kh} kW: {kw})"
        );
    }
    Ok(())
}

fn forward(
    call: &mut Call,
    input: &View,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil: bool,
    count_include_pad: bool,
    divisor: Option<i64>,
    out: Out,
    rank: usize,
) -> Result<()> {
    let given = WindowArguments { kernel, stride, padding, dilation: &[1], ceil };
    let pooling = Pooling::new(&given, count_include_pad, divisor, rank)?;
    check_turns(call, pooling.windows.elements())?;
    check_input(input, &pooling.windows)?;
    let sizes = output_sizes(input, &pooling.windows)?;
    let result = result(call, out.given(), input.dtype, &sizes, keeps_channels_last(input, rank))?;
    run(call, false, &pooling, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil: bool,
    count_include_pad: bool,
    divisor: Option<i64>,
    out: Out,
    rank: usize,
) -> Result<()> {
    let given = WindowArguments { kernel, stride, padding, dilation: &[1], ceil };
    let pooling = Pooling::new(&given, count_include_pad, divisor, rank)?;
    check_turns(call, pooling.windows.elements())?;
    check_input(input, &pooling.windows)?;
    check_sizes(grad, &output_sizes(input, &pooling.windows)?)?;
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `gradOutput` but got dtype {}",
        type_name(input.dtype),
        type_name(grad.dtype)
    );
    let result = result(call, out.given(), input.dtype, &input.sizes, keeps_channels_last(input, rank))?;
    run(call, true, &pooling, grad, &result)?;
    call.ret(result);
    Ok(())
}

fn run(call: &Call, backward: bool, pooling: &Pooling, from: &View, to: &View) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let rank = pooling.windows.rank();
    let (from, to) = (batched(from, rank), batched(to, rank));
    let spec = Spec {
        backward,
        divisor: pooling.divisor,
        dtype: from.dtype,
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let (output, input) = if backward { (&from, &to) } else { (&to, &from) };
    let cover = Cover::Fixed(&pooling.windows);
    let arguments = Arguments {
        to: &to,
        from: &from,
        numel: to.numel(),
        channels: to.sizes[1],
        windows: CoverArgument { cover: &cover, input: &input.sizes[2..], output: &output.sizes[2..] },
        from_strides: &from,
        to_strides: &to,
        divisor: pooling.given as i32,
    };
    Ok(call.run_threads(&spec, &arguments, to.numel() as u64)?)
}
