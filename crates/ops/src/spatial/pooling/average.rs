//! avg_pool2d and avg_pool3d.

use super::cover::{Cover, CoverArgument, CoveredImage, Kind};
use super::window::{WindowArguments, Windows, check_image, check_sizes, output_sizes, spatial};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::spatial::geometry::{
    Coordinates, ImageStrides, batched, channels_last, check_dimension, for_each, index_type, result,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use crate::{check, operators};
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

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

/// By what the sum of a window is divided.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Divisor {
    /// Elements of the window, the padding included.
    Window,
    /// Elements of the input in the window.
    Input,
    /// A given number.
    Given,
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
        let windows = Windows::new(name(rank), rank, given)?;
        check!(divisor != Some(0), Runtime, "divisor must be not zero");
        let kind = match divisor {
            Some(_) => Divisor::Given,
            None if count_include_pad => Divisor::Window,
            None => Divisor::Input,
        };
        Ok(Pooling { windows, divisor: kind, given: divisor.unwrap_or(0) })
    }
}

fn name(rank: usize) -> &'static str {
    if rank == 2 { "avg_pool2d" } else { "avg_pool3d" }
}

fn check_input(input: &Tensor, windows: &Windows) -> Result<()> {
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
    input: &Tensor,
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
    check_turns(call, pooling.windows.len())?;
    check_input(input, &pooling.windows)?;
    let sizes = output_sizes(input, &pooling.windows)?;
    let result = result(call, out.given(), input.dtype, &sizes, keeps_channels_last(input, rank))?;
    run(call, false, &pooling, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &Tensor,
    input: &Tensor,
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
    check_turns(call, pooling.windows.len())?;
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

/// Whether the result has its channels closest in memory: CPU keeps that in two dimensions only.
fn keeps_channels_last(input: &Tensor, rank: usize) -> bool {
    rank == 2 && channels_last(input, rank)
}

fn run(call: &Call, backward: bool, pooling: &Pooling, from: &Tensor, to: &Tensor) -> Result<()> {
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
    call.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    backward: bool,
    divisor: Divisor,
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
}

parameters! {
    Spec as s => Arguments, Parameters {
        to: Output = s.dtype,
        from: Input = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        windows: CoveredImage = (Kind::Fixed, s.rank),
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
        /// Of [`Divisor::Given`].
        divisor: I32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.backward { "avg_pool_backward" } else { "avg_pool" }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &Spec, p: Parameters<'b>) {
    let Spec { backward, divisor, dtype, index, .. } = *spec;
    let Parameters { to, from, windows: covering, from_strides, to_strides, .. } = p;
    let compute = dtype.compute();
    let divided = |sum: Value<'b>, window: &[Value<'b>]| -> Value<'b> {
        let lengths = window.iter().enumerate().map(|(d, &at)| match divisor {
            Divisor::Window => covering.padded_length(d, at),
            _ => {
                let [first, end, _] = covering.elements(d, at, None);
                end - first
            }
        });
        let count = match divisor {
            Divisor::Given => p.divisor,
            _ => lengths.fold(b.i32(1), |a, n| a * n),
        };
        sum / count.cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(p.numel), || {
        let size = if backward { &covering.input } else { &covering.output };
        let at = Coordinates::new(i, p.channels, size, spec.channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        let ranges: Vec<_> = at
            .at
            .iter()
            .enumerate()
            .map(|(d, &x)| if backward { covering.windows(d, x) } else { covering.elements(d, x, None) })
            .collect();
        for_each(b, &ranges, |pixel| {
            let value = from.load(image + from_strides.pixel(pixel));
            sum.set(sum.get() + if backward { divided(value, pixel) } else { value });
        });
        if !backward {
            // A window wholly in the padding has no elements to average.
            let some = ranges.iter().fold(b.bool(true), |some, [first, end, _]| some & first.lt(*end));
            b.if_(some, || {
                let mean = divided(sum.get(), &at.at);
                // The CPU adds it to zero, which shows in the sign of a zero where the divisor is negative.
                sum.set(if divisor == Divisor::Given { mean.eq(0.0).select(mean.like(0.0), mean) } else { mean });
            });
        }
        to.store(to_strides.element(&at), sum.get());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::BF16, DType::F64, DType::I64] {
            for divisor in [Divisor::Window, Divisor::Input, Divisor::Given] {
                for (backward, index, channels_last, rank) in
                    [(false, ScalarType::U32, true, 2), (true, ScalarType::U64, false, 3)]
                {
                    let spec = Spec { backward, divisor, dtype, index, channels_last, rank };
                    crate::primitives::validate::accepted(&spec.build());
                }
            }
        }
    }
}
