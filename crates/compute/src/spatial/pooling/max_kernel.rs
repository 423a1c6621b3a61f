//! The kernels of max pooling: the maximum of each window and its position, and the gradient.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{Coordinates, ImageStrides, for_each, index_type, pixel_number};
use crate::spatial::pooling::windows::{Cover, Kind, PoolingArgument, PoolingParameter};
use crate::view::View;
use crate::view::memory_format::is_channels_last;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Specialisation of the forward kernel: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward {
    kind: Kind,
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
}

parameters! {
    Forward as s => ForwardArguments, ForwardParameters {
        out: Output = s.dtype,
        indices: Output = DType::I64,
        input: Input = s.dtype,
        /// Random samples of fractional windows, with the axes as the only spatial dimension.
        samples: Option<Input> = s.samples(),
        numel: Index = s.index,
        channels: Index = s.index,
        windows: PoolingParameter = (s.kind, s.rank),
        in_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
        index_strides: ImageStrides = (s.index, s.rank),
        sample_strides: Option<ImageStrides> = s.samples().map(|_| (s.index, 1)),
    }
}

impl Forward {
    /// The dtype of the random samples.
    fn samples(&self) -> Option<DType> {
        if let Kind::Fractional(dtype, _) = self.kind { Some(dtype) } else { None }
    }
}

/// Writes the maximum of each window to `out` and its row-major index in the image to `indices`.
/// All are `[batch, channels, spatial ...]`; `samples` of fractional windows are
/// `[batch, channels, axes]`.
pub fn forward(
    cx: &Context,
    cover: &Cover,
    input: &View,
    samples: Option<&View>,
    out: &View,
    indices: &View,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let spec = Forward {
        kind: cover.kind(),
        dtype: input.dtype,
        index: index_type(&[input, out, indices]),
        channels_last: is_channels_last(out),
        rank: out.dim() - 2,
    };
    let arguments = ForwardArguments {
        out,
        indices,
        input,
        samples,
        numel: out.numel(),
        channels: out.sizes[1],
        windows: PoolingArgument { cover, input: &input.sizes[2..], output: &out.sizes[2..] },
        in_strides: input,
        out_strides: out,
        index_strides: indices,
        sample_strides: samples,
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

impl KernelSpec for Forward {
    fn name(&self) -> &'static str {
        "max_pool"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let covering = p.windows;
        let random = p.samples.zip(p.sample_strides);
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &covering.output, self.channels_last);
            let samples = random.as_ref().map(|(samples, strides)| {
                let first = strides.image(&at);
                // In two dimensions the first sample is for the columns.
                let place = |d: usize| b.i32(if self.rank == 2 { 1 - d as i32 } else { d as i32 });
                (*samples, (0..self.rank).map(|d| first + strides.step(0, place(d))).collect())
            });
            let ranges: Vec<_> =
                at.at.iter().enumerate().map(|(d, &o)| covering.elements(d, o, samples.as_ref())).collect();
            let image = p.in_strides.image(&at);
            let firsts: Vec<Value> = ranges.iter().map(|r| r[0]).collect();
            let best = b.var(lowest(b, self.dtype));
            let chosen = b.var(pixel_number(&firsts, &covering.input, self.index));
            for_each(b, &ranges, |pixel| {
                let value = p.input.load(image + p.in_strides.pixel(pixel));
                // The first of equal elements wins, and the last NaN.
                b.if_(value.gt(best.get()) | value.is_nan(), || {
                    best.set(value);
                    chosen.set(pixel_number(pixel, &covering.input, self.index));
                });
            });
            p.out.store(p.out_strides.element(&at), best.get());
            p.indices.store(p.index_strides.element(&at), chosen.get().cast(ScalarType::I64));
        });
    }
}

/// The smallest value.
fn lowest(b: &Builder, dtype: DType) -> Value<'_> {
    match dtype {
        DType::Bool | DType::U8 => b.i32(0),
        DType::I8 => b.i32(i32::from(i8::MIN)),
        DType::I16 => b.i32(i32::from(i16::MIN)),
        DType::I32 => b.i32(i32::MIN),
        DType::I64 => b.int(ScalarType::I64, i64::MIN as u64),
        DType::U16 | DType::U32 | DType::U64 => b.constant_of(dtype.compute(), 0.0),
        _ => b.float(dtype.compute(), f64::NEG_INFINITY),
    }
}

/// Writes the gradient of the input to `result`: each element gets the sum of the gradients of the
/// windows whose maximum it is.
pub fn backward(cx: &Context, cover: &Cover, grad: &View, indices: &View, result: &View) -> Result<()> {
    if result.numel() == 0 {
        return Ok(());
    }
    let spec = Backward {
        kind: cover.kind(),
        dtype: grad.dtype,
        index: index_type(&[grad, indices, result]),
        channels_last: is_channels_last(result),
        rank: grad.dim() - 2,
    };
    let arguments = BackwardArguments {
        result,
        grad,
        indices,
        numel: result.numel(),
        channels: result.sizes[1],
        windows: PoolingArgument { cover, input: &result.sizes[2..], output: &grad.sizes[2..] },
        grad_strides: grad,
        index_strides: indices,
        result_strides: result,
    };
    cx.run_threads(&spec, &arguments, result.numel() as u64)
}

/// Specialisation of the backward kernel: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Backward {
    kind: Kind,
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
}

parameters! {
    Backward as s => BackwardArguments, BackwardParameters {
        result: Output = s.dtype,
        grad: Input = s.dtype,
        indices: Input = DType::I64,
        numel: Index = s.index,
        channels: Index = s.index,
        windows: PoolingParameter = (s.kind, s.rank),
        grad_strides: ImageStrides = (s.index, s.rank),
        index_strides: ImageStrides = (s.index, s.rank),
        result_strides: ImageStrides = (s.index, s.rank),
    }
}

impl KernelSpec for Backward {
    fn name(&self) -> &'static str {
        "max_pool_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let covering = p.windows;
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &covering.input, self.channels_last);
            let wanted = pixel_number(&at.at, &covering.input, self.index).cast(ScalarType::I64);
            let sum = b.var(b.constant_of(self.dtype.compute(), 0.0));
            let (grads, choices) = (p.grad_strides.image(&at), p.index_strides.image(&at));
            let ranges: Vec<_> = at.at.iter().enumerate().map(|(d, &x)| covering.windows(d, x)).collect();
            for_each(b, &ranges, |window| {
                b.if_(p.indices.load(choices + p.index_strides.pixel(window)).eq(wanted), || {
                    sum.set(sum.get() + p.grad.load(grads + p.grad_strides.pixel(window)));
                });
            });
            p.result.store(p.result_strides.element(&at), sum.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64, DType::I64, DType::U8] {
            for (index, channels_last, rank) in [(ScalarType::U32, true, 2), (ScalarType::U64, false, 3)] {
                for kind in [
                    Kind::Fixed,
                    Kind::Adaptive(ScalarType::U32),
                    Kind::Adaptive(ScalarType::I64),
                    Kind::Fractional(DType::BF16, ScalarType::U32),
                    Kind::Fractional(DType::F64, ScalarType::I64),
                ] {
                    accepted(&Forward { kind, dtype, index, channels_last, rank }.build());
                    accepted(&Backward { kind, dtype, index, channels_last, rank }.build());
                }
            }
        }
    }
}
