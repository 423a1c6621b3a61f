//! avg_pool2d and avg_pool3d.

use super::cover::{Covering, Kind};
use super::{Arguments, Windows, check_image, check_sizes, output_sizes, spatial};
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::spatial::geometry::{
    Place, Strides, axis_params, batched, for_each, index_type, pass_axes, pass_strides, result,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::avg_pool2d", |c| forward(c, 2, None)),
    op("aten::avg_pool2d.out", |c| forward(c, 2, Some(7))),
    op("aten::avg_pool2d_backward", |c| backward(c, 2, None)),
    op("aten::avg_pool2d_backward.grad_input", |c| backward(c, 2, Some(8))),
    op("aten::avg_pool3d", |c| forward(c, 3, None)),
    op("aten::avg_pool3d.out", |c| forward(c, 3, Some(7))),
    op("aten::avg_pool3d_backward", |c| backward(c, 3, None)),
    op("aten::avg_pool3d_backward.grad_input", |c| backward(c, 3, Some(8))),
];

/// By what the sum of a window is divided.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Divisor {
    /// Elements of the window, the padding included.
    Window,
    /// Elements of the input in the window.
    Input,
    /// A given number.
    Given(i64),
}

impl Divisor {
    fn code(self) -> u32 {
        match self {
            Divisor::Window => 0,
            Divisor::Input => 1,
            Divisor::Given(_) => 2,
        }
    }

    fn given(self) -> i64 {
        if let Divisor::Given(n) = self { n } else { 0 }
    }
}

fn name(rank: usize) -> &'static str {
    if rank == 2 { "avg_pool2d" } else { "avg_pool3d" }
}

/// `(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)` from argument `first`
fn arguments(call: &Call, rank: usize, first: usize) -> Result<(Windows, Divisor)> {
    let list = |i: usize| call.ints(first + i);
    let given = Arguments {
        kernel: list(0)?,
        stride: list(1)?,
        padding: list(2)?,
        dilation: &[1],
        ceil: call.flag(first + 3)?,
    };
    let windows = Windows::new(name(rank), rank, &given)?;
    let given = call.opt_scalar(first + 5)?.map(Number::to_i64);
    check!(given != Some(0), Runtime, "divisor must be not zero");
    let divisor = match given {
        Some(n) => Divisor::Given(n),
        None if call.flag(first + 4)? => Divisor::Window,
        None => Divisor::Input,
    };
    Ok((windows, divisor))
}

fn check_input(input: &Tensor, windows: &Windows) -> Result<()> {
    let rank = windows.rank();
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

/// `(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override[, out])`
fn forward(call: &mut Call, rank: usize, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let (windows, divisor) = arguments(call, rank, 1)?;
    check_input(input, &windows)?;
    let sizes = output_sizes(input, &windows)?;
    let result = result(call, out, input.dtype, &sizes, last(input, rank))?;
    run(call, false, &windows, divisor, input, &result)?;
    call.ret(result);
    Ok(())
}

/// `(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override[, grad_input])`
fn backward(call: &mut Call, rank: usize, out: Option<usize>) -> Result<()> {
    let (grad, input) = (call.tensor(0)?, call.tensor(1)?);
    let (windows, divisor) = arguments(call, rank, 2)?;
    check_input(input, &windows)?;
    check_sizes(grad, &output_sizes(input, &windows)?)?;
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `gradOutput` but got dtype {}",
        type_name(input.dtype),
        type_name(grad.dtype)
    );
    let result = result(call, out, input.dtype, &input.sizes, last(input, rank))?;
    run(call, true, &windows, divisor, grad, &result)?;
    call.ret(result);
    Ok(())
}

/// Whether the result has its channels closest in memory: CPU keeps that in two dimensions only.
fn last(input: &Tensor, rank: usize) -> bool {
    rank == 2 && input.dim() == 4 && is_channels_last(input)
}

fn run(call: &Call, backward: bool, windows: &Windows, divisor: Divisor, from: &Tensor, to: &Tensor) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let rank = windows.rank();
    let (from, to) = (batched(from, rank), batched(to, rank));
    let shape = Shape {
        backward,
        divisor,
        dtype: from.dtype,
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let flags = u32::from(backward) | u32::from(shape.channels_last) << 1 | u32::from(shape.index == Scalar::U64) << 2;
    let key = [from.dtype as u32, flags, divisor.code(), rank as u32, 0, 0];
    let kernel = call.kernel("avg_pool", key, || build(shape))?;
    let mut launcher = call.launch(kernel).write(&to).read(&from);
    launcher = launcher.index(shape.index, to.numel()).index(shape.index, to.sizes[1]);
    let (output, input) = if backward { (&from, &to) } else { (&to, &from) };
    for sizes in
        [&output.sizes[2..], &input.sizes[2..], &windows.kernel, &windows.stride, &windows.padding, &windows.dilation]
    {
        launcher = pass_axes(launcher, sizes);
    }
    for t in [&from, &to] {
        launcher = pass_strides(launcher, shape.index, t);
    }
    launcher.i32(divisor.given() as i32).threads(to.numel() as u64)
}

/// Everything that changes the code.
#[derive(Copy, Clone)]
struct Shape {
    backward: bool,
    divisor: Divisor,
    dtype: DType,
    index: Scalar,
    channels_last: bool,
    rank: usize,
}

fn build(shape: Shape) -> Kernel {
    let b = Builder::new(if shape.backward { "avg_pool_backward" } else { "avg_pool" }, [GROUP, 1, 1]);
    write(&b, shape);
    b.finish()
}

fn write<'b>(b: &'b Builder, shape: Shape) {
    let Shape { backward, divisor, dtype, index, rank, .. } = shape;
    let to = b.pointer("to", dtype);
    let from = b.pointer("from", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [output, size] = ["output", "input"].map(|name| axis_params(b, name, rank));
    let covering = Covering::declare(b, Kind::Fixed, &size, &output);
    let [from_strides, to_strides] = [(); 2].map(|()| Strides::declare(b, index, rank));
    let given = b.param("divisor", Scalar::I32);
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
            Divisor::Given(_) => given,
            _ => lengths.fold(b.i32(1), |a, n| a * n),
        };
        sum / count.cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, if backward { &size } else { &output }, shape.channels_last);
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
            b.if_(some, || sum.set(divided(sum.get(), &at.at)));
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
            for divisor in [Divisor::Window, Divisor::Input, Divisor::Given(3)] {
                for (backward, index, channels_last, rank) in
                    [(false, Scalar::U32, true, 2), (true, Scalar::U64, false, 3)]
                {
                    let shape = Shape { backward, divisor, dtype, index, channels_last, rank };
                    crate::primitives::validate::accepted(&build(shape));
                }
            }
        }
    }
}
