//! avg_pool2d.

use super::max::covering;
use super::{
    Place, Strides, Windows, batched, channels_last, check_image, index_type, output_sizes, pair_params, pass_pair,
    pass_strides, result,
};
use crate::call::{Call, Scalar as Number};
use crate::check;
use crate::error::Result;
use crate::launch::{GROUP, linear_id};
use crate::table::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::avg_pool2d", |c| forward(c, None)),
    op("aten::avg_pool2d.out", |c| forward(c, Some(7))),
    op("aten::avg_pool2d_backward", |c| backward(c, None)),
    op("aten::avg_pool2d_backward.grad_input", |c| backward(c, Some(8))),
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

/// `(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)` from argument `first`
fn arguments(call: &Call, first: usize) -> Result<(Windows, Divisor)> {
    let list = |i: usize| call.ints(first + i);
    let windows = Windows::new("avg_pool2d", list(0)?, list(1)?, list(2)?, &[1], call.flag(first + 3)?)?;
    let given = call.opt_scalar(first + 5)?.map(Number::to_i64);
    check!(given != Some(0), Runtime, "divisor must be not zero");
    let divisor = match given {
        Some(n) => Divisor::Given(n),
        None if call.flag(first + 4)? => Divisor::Window,
        None => Divisor::Input,
    };
    Ok((windows, divisor))
}

fn check_dtype(t: &Tensor) -> Result<()> {
    check!(
        t.dtype.is_float() || t.dtype == DType::I64,
        NotImplemented,
        "\"avg_pool2d\" not implemented for '{}'",
        t.dtype
    );
    Ok(())
}

/// `avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override[, out])`
fn forward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let (windows, divisor) = arguments(call, 1)?;
    check_image(input)?;
    check_dtype(input)?;
    let sizes = output_sizes(input, &windows)?;
    let result = result(call, out, input.dtype, &sizes, input)?;
    run(call, false, &windows, divisor, input, &result, channels_last(input))?;
    call.ret(result);
    Ok(())
}

/// `avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
/// divisor_override[, grad_input])`
fn backward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (grad, input) = (call.tensor(0)?, call.tensor(1)?);
    let (windows, divisor) = arguments(call, 2)?;
    check_image(input)?;
    check_dtype(input)?;
    let sizes = output_sizes(input, &windows)?;
    check!(
        grad.sizes == sizes && grad.dtype == input.dtype,
        Runtime,
        "avg_pool2d backward: expected a gradient of shape {:?} and dtype {}, got {}",
        sizes.as_slice(),
        input.dtype,
        grad.describe()
    );
    let result = result(call, out, input.dtype, &input.sizes, input)?;
    run(call, true, &windows, divisor, grad, &result, channels_last(input))?;
    call.ret(result);
    Ok(())
}

fn run(
    call: &Call,
    backward: bool,
    windows: &Windows,
    divisor: Divisor,
    from: &Tensor,
    to: &Tensor,
    last: bool,
) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let (from, to) = (batched(from), batched(to));
    let index = index_type(&[&from, &to]);
    let flags = u32::from(backward) | u32::from(last) << 1 | u32::from(index == Scalar::U64) << 2;
    let key = [from.dtype as u32, flags, divisor.code(), 0, 0, 0];
    let kernel = call.kernel("avg_pool2d", key, || build(backward, divisor, from.dtype, index, last))?;
    let mut launcher = call.launch(kernel).write(&to).read(&from);
    launcher = launcher.index(index, to.numel()).index(index, to.sizes[1]);
    let (output, input) = if backward { (&from, &to) } else { (&to, &from) };
    let pairs = [
        [output.sizes[2], output.sizes[3]],
        [input.sizes[2], input.sizes[3]],
        windows.kernel,
        windows.stride,
        windows.padding,
    ];
    for pair in pairs {
        launcher = pass_pair(launcher, pair);
    }
    for t in [&from, &to] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.i32(divisor.given() as i32).threads(to.numel() as u64)
}

fn build(backward: bool, divisor: Divisor, dtype: DType, index: Scalar, channels_last: bool) -> Kernel {
    let b = Builder::new(if backward { "avg_pool2d_backward" } else { "avg_pool2d" }, [GROUP, 1, 1]);
    write(&b, backward, divisor, dtype, index, channels_last);
    b.finish()
}

fn write<'b>(b: &'b Builder, backward: bool, divisor: Divisor, dtype: DType, index: Scalar, channels_last: bool) {
    let to = b.pointer("to", dtype);
    let from = b.pointer("from", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [output, size, kernel, stride, padding] =
        ["output", "input", "kernel", "stride", "padding"].map(|name| pair_params(b, name));
    let [from_strides, to_strides] = [(); 2].map(|()| Strides::declare(b, index));
    let given = b.param("divisor", Scalar::I32);
    let compute = dtype.compute();
    // The window `at` along dimension `d`: its first and end in the input, and its length with padding.
    let window = |at: Value<'b>, d: usize| -> [Value<'b>; 3] {
        let start = at * stride[d] - padding[d];
        let end = (start + kernel[d]).min(size[d] + padding[d]);
        [start.max(0), end.min(size[d]), end - start]
    };
    let divided = |sum: Value<'b>, rows: [Value<'b>; 3], columns: [Value<'b>; 3]| -> Value<'b> {
        let count = match divisor {
            Divisor::Window => rows[2] * columns[2],
            Divisor::Input => (rows[1] - rows[0]) * (columns[1] - columns[0]),
            Divisor::Given(_) => given,
        };
        sum / count.cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, if backward { size } else { output }, channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        if backward {
            let rows = covering(at.y + padding[0], kernel[0] - 1, stride[0], output[0]);
            let columns = covering(at.x + padding[1], kernel[1] - 1, stride[1], output[1]);
            b.for_(rows.0, rows.1, 1, |y| {
                b.for_(columns.0, columns.1, 1, |x| {
                    let g = from.load(image + from_strides.pixel(y, x));
                    sum.set(sum.get() + divided(g, window(y, 0), window(x, 1)));
                });
            });
        } else {
            let (rows, columns) = (window(at.y, 0), window(at.x, 1));
            b.for_(rows[0], rows[1], 1, |y| {
                b.for_(columns[0], columns[1], 1, |x| {
                    sum.set(sum.get() + from.load(image + from_strides.pixel(y, x)));
                });
            });
            // A window wholly in the padding has no elements to average.
            let some = rows[0].lt(rows[1]) & columns[0].lt(columns[1]);
            b.if_(some, || sum.set(divided(sum.get(), rows, columns)));
        }
        to.store(to_strides.image(&at) + to_strides.pixel(at.y, at.x), sum.get());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::BF16, DType::F64, DType::I64] {
            for divisor in [Divisor::Window, Divisor::Input, Divisor::Given(3)] {
                for (backward, index, last) in [(false, Scalar::U32, true), (true, Scalar::U64, false)] {
                    crate::validate::accepted(&build(backward, divisor, dtype, index, last));
                }
            }
        }
    }
}
