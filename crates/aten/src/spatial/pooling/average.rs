//! avg_pool2d and avg_pool3d.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::spatial::geometry::{check_dimension, result};
use crate::spatial::pooling::window::{WindowArguments, check_image, check_sizes, output_sizes};
use crate::{check, group, operators};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::spatial::pooling::average::{self, Divisor, keeps_channels_last, name};
use dml_compute::spatial::pooling::window::{Windows, spatial};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward(self, {WindowArguments}, {Average}, out; 2) {
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, {WindowArguments}, {Average}, out; 2) {
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "aten::avg_pool2d_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, {WindowArguments}, {Average}, out; 3) {
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        "aten::avg_pool3d.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, {WindowArguments}, {Average}, out; 3) {
        "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        "aten::avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

group! {
    /// What sums of windows are divided by.
    struct Average {
        count_include_pad: bool,
        divisor_override: Option<i64>,
    }
}

/// A pooling: its windows, and the divisor of their sums.
struct Pooling {
    windows: Windows,
    divisor: Divisor,
    /// The number of [`Divisor::Given`].
    given: i64,
}

impl Pooling {
    fn new(given: &WindowArguments, average: &Average, rank: usize) -> Result<Pooling> {
        let divisor = average.divisor_override;
        let windows = crate::spatial::pooling::window::checked(name(rank), rank, given)?;
        check!(divisor != Some(0), Runtime, "divisor must be not zero");
        let kind = match divisor {
            Some(_) => Divisor::Given,
            None if average.count_include_pad => Divisor::Window,
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
    given: WindowArguments,
    average: Average,
    out: Out,
    rank: usize,
) -> Result<()> {
    let pooling = Pooling::new(&given, &average, rank)?;
    check_loop_iterations(call, pooling.windows.elements())?;
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
    given: WindowArguments,
    average: Average,
    out: Out,
    rank: usize,
) -> Result<()> {
    let pooling = Pooling::new(&given, &average, rank)?;
    check_loop_iterations(call, pooling.windows.elements())?;
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
    Ok(average::pool(call, backward, &pooling.windows, pooling.divisor, pooling.given, from, to)?)
}
