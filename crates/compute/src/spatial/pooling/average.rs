//! avg_pool2d and avg_pool3d.

use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{Coordinates, ImageStrides, channels_last, for_each};
use crate::spatial::pooling::cover::{CoveredImage, Kind};
use crate::view::View;
use dml_engine::interface::{I32, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// By what the sum of a window is divided.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Divisor {
    /// Elements of the window, the padding included.
    Window,
    /// Elements of the input in the window.
    Input,
    /// A given number.
    Given,
}

pub fn name(rank: usize) -> &'static str {
    if rank == 2 { "avg_pool2d" } else { "avg_pool3d" }
}

/// Whether the result has its channels closest in memory: CPU keeps that in two dimensions only.
pub fn keeps_channels_last(input: &View, rank: usize) -> bool {
    rank == 2 && channels_last(input, rank)
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub backward: bool,
    pub divisor: Divisor,
    pub dtype: DType,
    pub index: ScalarType,
    pub channels_last: bool,
    pub rank: usize,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
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
                // The CPU adds it to zero, which shows in the sign of a zero where the divisor is
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
