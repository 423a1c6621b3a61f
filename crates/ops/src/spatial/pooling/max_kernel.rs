//! The kernels of max pooling: the largest element of each window and its place, and the gradient.

use super::cover::{Cover, Covering, Kind};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, linear_id};
use crate::spatial::geometry::{
    Place, Strides, axis_params, for_each, index_type, pass_axes, pass_strides, pixel_number,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// Everything that changes the code.
#[derive(Copy, Clone)]
struct Shape {
    kind: Kind,
    dtype: DType,
    index: Scalar,
    channels_last: bool,
    rank: usize,
}

impl Shape {
    fn key(&self) -> [u32; 6] {
        let flags = u32::from(self.channels_last) | u32::from(self.index == Scalar::U64) << 1;
        [self.dtype as u32, self.kind.code(), flags, self.rank as u32, 0, 0]
    }
}

/// Writes the largest element of each window to `out` and its row-major number in the image to `indices`. All are
/// `[batch, channels, spatial ...]`; `samples` of fractional windows are `[batch, channels, axes]`.
pub fn forward(
    call: &Call,
    cover: &Cover,
    input: &Tensor,
    samples: Option<&Tensor>,
    out: &Tensor,
    indices: &Tensor,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let shape = Shape {
        kind: cover.kind(),
        dtype: input.dtype,
        index: index_type(&[input, out, indices]),
        channels_last: is_channels_last(out),
        rank: out.dim() - 2,
    };
    let kernel = call.kernel("max_pool", shape.key(), || build_forward(shape))?;
    let mut launcher = call.launch(kernel).write(out).write(indices).read(input);
    if let Some(samples) = samples {
        launcher = launcher.read(samples);
    }
    launcher = launcher.index(shape.index, out.numel()).index(shape.index, out.sizes[1]);
    launcher = pass_axes(pass_axes(launcher, &input.sizes[2..]), &out.sizes[2..]);
    launcher = cover.pass(launcher, &input.sizes[2..]);
    for t in [input, out, indices] {
        launcher = pass_strides(launcher, shape.index, t);
    }
    if let Some(samples) = samples {
        launcher = pass_strides(launcher, shape.index, samples);
    }
    launcher.threads(out.numel() as u64)
}

fn build_forward(shape: Shape) -> Kernel {
    let Shape { kind, dtype, index, rank, .. } = shape;
    let builder = Builder::new("max_pool", [GROUP, 1, 1]);
    let b = &builder;
    let (out, indices) = (b.pointer("out", dtype), b.pointer("indices", DType::I64));
    let input = b.pointer("input", dtype);
    let random = match kind {
        Kind::Fractional(dtype) => Some(b.pointer("samples", dtype)),
        _ => None,
    };
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [size, windows] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let covering = Covering::declare(b, kind, &size, &windows);
    let [in_strides, out_strides, index_strides] = [(); 3].map(|()| Strides::declare(b, index, rank));
    let random = random.map(|samples| (samples, Strides::declare(b, index, 1)));
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &windows, shape.channels_last);
        let samples = random.as_ref().map(|(samples, strides)| {
            let first = strides.image(&at);
            // In two dimensions the first sample is that of the columns.
            let place = |d: usize| b.i32(if rank == 2 { 1 - d as i32 } else { d as i32 });
            (*samples, (0..rank).map(|d| first + strides.step(0, place(d))).collect())
        });
        let ranges: Vec<_> =
            at.at.iter().enumerate().map(|(d, &o)| covering.elements(d, o, samples.as_ref())).collect();
        let image = in_strides.image(&at);
        let firsts: Vec<Value> = ranges.iter().map(|r| r[0]).collect();
        let best = b.var(lowest(b, dtype));
        let chosen = b.var(pixel_number(&firsts, &size, index));
        for_each(b, &ranges, |pixel| {
            let value = input.load(image + in_strides.pixel(pixel));
            // Like PyTorch's: the first of equals, and the last NaN.
            b.if_(value.gt(best.get()) | value.is_nan(), || {
                best.set(value);
                chosen.set(pixel_number(pixel, &size, index));
            });
        });
        out.store(out_strides.element(&at), best.get());
        indices.store(index_strides.element(&at), chosen.get().cast(Scalar::I64));
    });
    builder.finish()
}

/// What no value is below.
fn lowest(b: &Builder, dtype: DType) -> Value<'_> {
    match dtype {
        DType::Bool | DType::U8 => b.i32(0),
        DType::I8 => b.i32(i32::from(i8::MIN)),
        DType::I16 => b.i32(i32::from(i16::MIN)),
        DType::I32 => b.i32(i32::MIN),
        DType::I64 => b.int(Scalar::I64, i64::MIN as u64),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => b.float(dtype.compute(), f64::NEG_INFINITY),
        DType::U16 | DType::U32 | DType::U64 => b.constant_of(dtype.compute(), 0.0),
    }
}

/// Writes to `result` the gradient of the input: each element gets the gradients of the windows that chose it.
pub fn backward(call: &Call, cover: &Cover, grad: &Tensor, indices: &Tensor, result: &Tensor) -> Result<()> {
    if result.numel() == 0 {
        return Ok(());
    }
    let shape = Shape {
        kind: cover.kind(),
        dtype: grad.dtype,
        index: index_type(&[grad, indices, result]),
        channels_last: is_channels_last(result),
        rank: grad.dim() - 2,
    };
    let kernel = call.kernel("max_pool_backward", shape.key(), || build_backward(shape))?;
    let mut launcher = call.launch(kernel).write(result).read(grad).read(indices);
    launcher = launcher.index(shape.index, result.numel()).index(shape.index, result.sizes[1]);
    launcher = pass_axes(pass_axes(launcher, &result.sizes[2..]), &grad.sizes[2..]);
    launcher = cover.pass(launcher, &result.sizes[2..]);
    for t in [grad, indices, result] {
        launcher = pass_strides(launcher, shape.index, t);
    }
    launcher.threads(result.numel() as u64)
}

fn build_backward(shape: Shape) -> Kernel {
    let Shape { kind, dtype, index, rank, .. } = shape;
    let builder = Builder::new("max_pool_backward", [GROUP, 1, 1]);
    let b = &builder;
    let result = b.pointer("grad_input", dtype);
    let (grad, indices) = (b.pointer("grad_output", dtype), b.pointer("indices", DType::I64));
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [size, windows] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let covering = Covering::declare(b, kind, &size, &windows);
    let [grad_strides, index_strides, result_strides] = [(); 3].map(|()| Strides::declare(b, index, rank));
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &size, shape.channels_last);
        let wanted = pixel_number(&at.at, &size, index).cast(Scalar::I64);
        let sum = b.var(b.constant_of(dtype.compute(), 0.0));
        let (grads, choices) = (grad_strides.image(&at), index_strides.image(&at));
        let ranges: Vec<_> = at.at.iter().enumerate().map(|(d, &x)| covering.windows(d, x)).collect();
        for_each(b, &ranges, |window| {
            b.if_(indices.load(choices + index_strides.pixel(window)).eq(wanted), || {
                sum.set(sum.get() + grad.load(grads + grad_strides.pixel(window)));
            });
        });
        result.store(result_strides.element(&at), sum.get());
    });
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I64, DType::U8] {
            for (index, channels_last, rank) in [(Scalar::U32, true, 2), (Scalar::U64, false, 3)] {
                for kind in [Kind::Fixed, Kind::Adaptive, Kind::Fractional(DType::BF16), Kind::Fractional(DType::F64)] {
                    let shape = Shape { kind, dtype, index, channels_last, rank };
                    accepted(&build_forward(shape));
                    accepted(&build_backward(shape));
                }
            }
        }
    }
}
