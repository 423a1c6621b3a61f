//! The mean of each window of an image, with one window for each element of the result: they
//! overlap if sizes do not divide.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::spatial::geometry::{Coordinates, ImageStrides, batched, channels_last, for_each, index_type};
use crate::spatial::pooling::window::{adaptive_len, spatial};
use crate::spatial::pooling::windows::{Cover, Kind, PoolingArgument, PoolingParameter};
use crate::view::View;
use crate::view::memory_format::is_channels_last;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Whether the result is channels last: in two dimensions, if the input is.
pub fn keeps_channels_last(input: &View, rank: usize) -> bool {
    rank == 2 && channels_last(input, rank)
}

/// Writes the means of the windows of `from` to `to`, along the last `rank` dimensions; if
/// `backward`, the gradient of the input from the gradient of the result. Both are images,
/// `[batch, channels, ..]` or without a batch, of any strides and one dtype.
pub fn run(cx: &Context, backward: bool, rank: usize, from: &View, to: &View) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    // In a gradient each element iterates over its windows.
    check_loop_iterations(cx, adaptive_len(spatial(from, rank), spatial(to, rank)))?;
    let (from, to) = (batched(from, rank), batched(to, rank));
    let cover = Cover::adaptive(cx, &from.sizes[2..], &to.sizes[2..]);
    let spec = Spec {
        backward,
        dtype: from.dtype,
        windows: cover.kind(),
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let arguments = Arguments {
        to: &to,
        from: &from,
        numel: to.numel(),
        channels: to.sizes[1],
        windows: PoolingArgument { cover: &cover, input: &from.sizes[2..], output: &to.sizes[2..] },
        from_strides: &from,
        to_strides: &to,
    };
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    backward: bool,
    dtype: DType,
    windows: Kind,
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
        /// From `from` to `to`. Coverage is symmetric: backward, the windows that contain an
        /// element are the elements that it would cover as a window.
        windows: PoolingParameter = (s.windows, s.rank),
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.backward { "adaptive_avg_pool_backward" } else { "adaptive_avg_pool" }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &Spec, p: Parameters<'b>) {
    let Spec { backward, dtype, index, .. } = *spec;
    let Parameters { to, from, windows: covering, from_strides, to_strides, .. } = p;
    let compute = dtype.compute();
    let count = |ranges: &[[Value<'b>; 3]]| {
        ranges.iter().fold(b.i32(1), |product, [first, end, _]| product * (*end - *first)).cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(p.numel), || {
        let at = Coordinates::new(i, p.channels, &covering.output, spec.channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        let ranges: Vec<_> = at.at.iter().enumerate().map(|(d, &x)| covering.elements(d, x, None)).collect();
        for_each(b, &ranges, |pixel| {
            let value = from.load(image + from_strides.pixel(pixel));
            let term = if backward {
                let window: Vec<_> = pixel.iter().enumerate().map(|(d, &x)| covering.windows(d, x)).collect();
                value / count(&window)
            } else {
                value
            };
            sum.set(sum.get() + term);
        });
        let total = if backward { sum.get() } else { sum.get() / count(&ranges) };
        to.store(to_strides.element(&at), total);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            for (backward, index, channels_last, rank, ends) in [
                (false, ScalarType::U32, true, 2, ScalarType::I64),
                (true, ScalarType::U64, false, 3, ScalarType::I64),
                (true, ScalarType::U32, false, 2, ScalarType::U32),
            ] {
                let windows = Kind::Adaptive(ends);
                let spec = Spec { backward, dtype, windows, index, channels_last, rank };
                crate::primitives::validate::accepted(&spec.build());
            }
        }
    }
}
