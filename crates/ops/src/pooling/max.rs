//! max_pool2d with the indices of the chosen elements.

use super::{
    Place, Strides, Windows, batched, channels_last, check_image, index_type, output_sizes, pair_params, pass_pair,
    pass_strides, result,
};
use crate::call::Call;
use crate::check;
use crate::error::Result;
use crate::launch::{GROUP, linear_id};
use crate::table::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::max_pool2d_with_indices", |c| forward(c, [None, None])),
    op("aten::max_pool2d_with_indices.out", |c| forward(c, [Some(6), Some(7)])),
    op("aten::max_pool2d_with_indices_backward", |c| backward(c, None)),
    op("aten::max_pool2d_with_indices_backward.grad_input", |c| backward(c, Some(8))),
];

/// `(kernel_size, stride, padding, dilation, ceil_mode)` from argument `first`
fn windows(call: &Call, first: usize) -> Result<Windows> {
    let list = |i: usize| call.ints(first + i);
    Windows::new("max_pool2d", list(0)?, list(1)?, list(2)?, list(3)?, call.flag(first + 4)?)
}

/// `max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode[, out, indices])`
fn forward(call: &mut Call, outs: [Option<usize>; 2]) -> Result<()> {
    let input = call.tensor(0)?;
    let windows = windows(call, 1)?;
    check!(matches!(input.dim(), 3 | 4), Runtime, "non-empty 3D or 4D (batch mode) tensor expected for input");
    check_image(input)?;
    check!(input.dtype != DType::Bool, NotImplemented, "\"max_pool2d\" not implemented for 'Bool'");
    let sizes = output_sizes(input, &windows)?;
    let out = result(call, outs[0], input.dtype, &sizes, input)?;
    let indices = result(call, outs[1], DType::I64, &sizes, input)?;
    if out.numel() > 0 {
        run_forward(call, &windows, &batched(input), &batched(&out), &batched(&indices))?;
    }
    call.ret(out);
    call.ret(indices);
    Ok(())
}

fn run_forward(call: &Call, windows: &Windows, input: &Tensor, out: &Tensor, indices: &Tensor) -> Result<()> {
    let index = index_type(&[input, out, indices]);
    let last = channels_last(input);
    let key = [input.dtype as u32, u32::from(last), u32::from(index == Scalar::U64), 0, 0, 0];
    let kernel = call.kernel("max_pool2d", key, || {
        let b = Builder::new("max_pool2d", [GROUP, 1, 1]);
        write_forward(&b, input.dtype, index, last);
        b.finish()
    })?;
    let mut launcher = call.launch(kernel).write(out).write(indices).read(input);
    launcher = launcher.index(index, out.numel()).index(index, input.sizes[1]);
    let pairs = [
        [out.sizes[2], out.sizes[3]],
        [input.sizes[2], input.sizes[3]],
        windows.kernel,
        windows.stride,
        windows.padding,
        windows.dilation,
    ];
    for pair in pairs {
        launcher = pass_pair(launcher, pair);
    }
    for t in [input, out, indices] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.threads(out.numel() as u64)
}

fn write_forward(b: &Builder, dtype: DType, index: Scalar, channels_last: bool) {
    let out = b.pointer("out", dtype);
    let indices = b.pointer("indices", DType::I64);
    let input = b.pointer("input", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [output, size, kernel, stride, padding, dilation] =
        ["output", "input", "kernel", "stride", "padding", "dilation"].map(|name| pair_params(b, name));
    let [in_strides, out_strides, index_strides] = [(); 3].map(|()| Strides::declare(b, index));
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, output, channels_last);
        let image = in_strides.image(&at);
        let compute = dtype.compute();
        let best = b.var(b.constant_of(compute, 0.0));
        let chosen = b.var(b.i32(-1));
        let (top, left) = (at.y * stride[0] - padding[0], at.x * stride[1] - padding[1]);
        b.for_(0, kernel[0], 1, |ky| {
            let y = top + ky * dilation[0];
            b.if_(y.ge(0) & y.lt(size[0]), || {
                b.for_(0, kernel[1], 1, |kx| {
                    let x = left + kx * dilation[1];
                    b.if_(x.ge(0) & x.lt(size[1]), || {
                        let value = input.load(image + in_strides.pixel(y, x));
                        // Like PyTorch's: the first of equals, and the last NaN.
                        b.if_(chosen.get().lt(0) | value.gt(best.get()) | value.is_nan(), || {
                            best.set(value);
                            chosen.set(y * size[1] + x);
                        });
                    });
                });
            });
        });
        out.store(out_strides.image(&at) + out_strides.pixel(at.y, at.x), best.get());
        indices.store(index_strides.image(&at) + index_strides.pixel(at.y, at.x), chosen.get().cast(Scalar::I64));
    });
}

/// `max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices[,
/// grad_input])`
fn backward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (grad, input, indices) = (call.tensor(0)?, call.tensor(1)?, call.tensor(7)?);
    let windows = windows(call, 2)?;
    check_image(input)?;
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `grad_output` but got dtype {}",
        input.dtype,
        grad.dtype
    );
    let sizes = output_sizes(input, &windows)?;
    check!(
        grad.sizes == sizes && indices.sizes == sizes,
        Runtime,
        "max_pool2d backward: expected grad_output and indices of shape {:?}, got {:?} and {:?}",
        sizes.as_slice(),
        grad.sizes.as_slice(),
        indices.sizes.as_slice()
    );
    let result = result(call, out, input.dtype, &input.sizes, input)?;
    if result.numel() > 0 {
        let [grad, indices] = [grad, indices].map(batched);
        run_backward(call, &windows, &grad, &indices, &batched(&result), channels_last(input))?;
    }
    call.ret(result);
    Ok(())
}

fn run_backward(
    call: &Call,
    windows: &Windows,
    grad: &Tensor,
    indices: &Tensor,
    result: &Tensor,
    last: bool,
) -> Result<()> {
    let index = index_type(&[grad, indices, result]);
    let key = [grad.dtype as u32, u32::from(last), u32::from(index == Scalar::U64), 0, 0, 0];
    let kernel = call.kernel("max_pool2d_backward", key, || build_backward(grad.dtype, index, last))?;
    let mut launcher = call.launch(kernel).write(result).read(grad).read(indices);
    launcher = launcher.index(index, result.numel()).index(index, result.sizes[1]);
    let reach = [0, 1].map(|d| (windows.kernel[d] - 1) * windows.dilation[d]);
    let pairs =
        [[grad.sizes[2], grad.sizes[3]], [result.sizes[2], result.sizes[3]], reach, windows.stride, windows.padding];
    for pair in pairs {
        launcher = pass_pair(launcher, pair);
    }
    for t in [grad, indices, result] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.threads(result.numel() as u64)
}

/// Each element of the input looks at the windows that may have chosen it.
fn build_backward(dtype: DType, index: Scalar, channels_last: bool) -> Kernel {
    let b = Builder::new("max_pool2d_backward", [GROUP, 1, 1]);
    let result = b.pointer("grad_input", dtype);
    let grad = b.pointer("grad_output", dtype);
    let indices = b.pointer("indices", DType::I64);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [output, size, reach, stride, padding] =
        ["output", "input", "reach", "stride", "padding"].map(|name| pair_params(&b, name));
    let [grad_strides, index_strides, result_strides] = [(); 3].map(|()| Strides::declare(&b, index));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, size, channels_last);
        let wanted = (at.y * size[1] + at.x).cast(Scalar::I64);
        let sum = b.var(b.constant_of(dtype.compute(), 0.0));
        let (grads, choices) = (grad_strides.image(&at), index_strides.image(&at));
        let rows = covering(at.y + padding[0], reach[0], stride[0], output[0]);
        let columns = covering(at.x + padding[1], reach[1], stride[1], output[1]);
        b.for_(rows.0, rows.1, 1, |y| {
            b.for_(columns.0, columns.1, 1, |x| {
                b.if_(indices.load(choices + index_strides.pixel(y, x)).eq(wanted), || {
                    sum.set(sum.get() + grad.load(grads + grad_strides.pixel(y, x)));
                });
            });
        });
        result.store(result_strides.image(&at) + result_strides.pixel(at.y, at.x), sum.get());
    });
    b.finish()
}

/// Windows `first..end` that reach the padded coordinate `at`: they start at multiples of `stride` and span `reach + 1`.
pub(super) fn covering<'b>(
    at: Value<'b>,
    reach: Value<'b>,
    stride: Value<'b>,
    windows: Value<'b>,
) -> (Value<'b>, Value<'b>) {
    let behind = at - reach;
    // Rounded up; where the quotient would be negative, the first window.
    let first = behind.gt(0).select((behind + stride - 1) / stride, 0);
    (first, (at / stride + 1).min(windows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I64, DType::U8] {
            for (index, last) in [(Scalar::U32, true), (Scalar::U64, false)] {
                let b = Builder::new("max_pool2d", [GROUP, 1, 1]);
                write_forward(&b, dtype, index, last);
                crate::validate::accepted(&b.finish());
                crate::validate::accepted(&build_backward(dtype, index, last));
            }
        }
    }
}
