//! The mean of each window of an image, along two or three dimensions.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{Coordinates, ImageStrides, batched, channels_last, for_each, index_type};
use crate::spatial::pooling::window::Windows;
use crate::spatial::pooling::windows::{Cover, Kind, PoolingArgument, PoolingParameter};
use crate::view::View;
use crate::view::memory_format::is_channels_last;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The divisor of a window's sum.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Divisor {
    /// Number of elements of the window, including the padding.
    Window,
    /// Number of elements of the input in the window.
    Input,
    /// A given number.
    Given,
}

/// The name of this pooling in messages.
pub fn name(rank: usize) -> &'static str {
    if rank == 2 { "avg_pool2d" } else { "avg_pool3d" }
}

/// Whether the result is channels last: in two dimensions, if the input is.
pub fn keeps_channels_last(input: &View, rank: usize) -> bool {
    rank == 2 && channels_last(input, rank)
}

/// Writes the means of the windows of `from` to `to`; if `backward`, the gradient of the input from
/// the gradient of the result. Both are images, `[batch, channels, ..]` or without a batch, of any
/// strides and one dtype. `given` is the number of [`Divisor::Given`].
pub fn pool(
    cx: &Context,
    backward: bool,
    windows: &Windows,
    divisor: Divisor,
    given: i64,
    from: &View,
    to: &View,
) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let rank = windows.rank();
    let (from, to) = (batched(from, rank), batched(to, rank));
    let spec = Spec {
        backward,
        divisor,
        dtype: from.dtype,
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let (output, input) = if backward { (&from, &to) } else { (&to, &from) };
    let cover = Cover::Fixed(windows);
    let arguments = Arguments {
        to: &to,
        from: &from,
        numel: to.numel(),
        channels: to.sizes[1],
        windows: PoolingArgument { cover: &cover, input: &input.sizes[2..], output: &output.sizes[2..] },
        from_strides: &from,
        to_strides: &to,
        divisor: given as i32,
    };
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Specialisation: everything that changes the code.
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
        windows: PoolingParameter = (Kind::Fixed, s.rank),
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
        /// The number of [`Divisor::Given`].
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
            // A window entirely in the padding has no elements to average.
            let some = ranges.iter().fold(b.bool(true), |some, [first, end, _]| some & first.lt(*end));
            b.if_(some, || {
                let mean = divided(sum.get(), &at.at);
                // The CPU adds it to zero, which determines the sign of a zero if the divisor is
                // negative.
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
