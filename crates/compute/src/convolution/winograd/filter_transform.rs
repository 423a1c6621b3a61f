//! The transform of a weight: every 3x3 filter becomes 4x4 numbers.

use crate::context::Context;
use crate::convolution::winograd::range;
use crate::convolution::winograd::transforms::{POINTS, TAPS, along_both, filter};
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{U32, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::{Builder, DType, Value};
use std::array::from_fn;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Filters are rotated by 180 degrees, as the gradient of the input needs them.
    pub turned: bool,
}

parameters! {
    /// A transform of a weight.
    pub Spec as s => Arguments, Parameters {
        /// Matrices of transformed numbers, `[point, read channel, written channel]`.
        out: Output = DType::F32,
        /// The weight.
        weight: Input = DType::F32,
        /// A flag that is set if a number is out of the transforms' range.
        found: WriteRange = DType::U32,
        /// Number of channels that the convolution reads, and that it writes.
        channels: [U32; 2],
        /// Strides of the two kinds of channels.
        steps: [U32; 2],
        /// Stride of the taps.
        tap: U32,
    }
}

/// Invocations of a workgroup along channels that are read and along channels that are written, and
/// how many of each are adjacent.
const GROUP: [u32; 2] = [8, 32];

const ADJACENT_CHANNELS: [u32; 2] = [4, 8];

/// Enqueues the transform of `weight` into `out`. `axes` are the weight's dimensions of the
/// channels that are read and written.
pub fn run(cx: &Context, weight: &View, axes: [usize; 2], out: &View, found: AddressRange) -> Result<()> {
    let spec = Spec { turned: axes == [0, 1] };
    let channels = axes.map(|d| weight.sizes[d] as u32);
    let steps = axes.map(|d| weight.strides[d] as u32);
    let arguments = Arguments { out, weight, found, channels, steps, tap: weight.strides[3] as u32 };
    cx.run(&spec, &arguments, [channels[1].div_ceil(GROUP[1]), channels[0].div_ceil(GROUP[0]), 1])
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "winograd filter"
    }

    fn workgroup(&self) -> [u32; 3] {
        [GROUP[0] * GROUP[1], 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { out, weight, found, channels: [read, written], steps, tap } = p;
        // A few adjacent channels along both axes, so that stores and loads are whole memory
        // sectors, whichever channels are adjacent in memory.
        let bits = |shift: u32, count: u32| (b.local_id(0) >> shift) & (count - 1);
        let shifts = [
            ADJACENT_CHANNELS[1].ilog2(),
            (ADJACENT_CHANNELS[0] * ADJACENT_CHANNELS[1]).ilog2(),
            (ADJACENT_CHANNELS[0] * GROUP[1]).ilog2(),
        ];
        let from = b.group_id(1) * GROUP[0]
            + bits(shifts[0], ADJACENT_CHANNELS[0])
            + bits(shifts[2], GROUP[0] / ADJACENT_CHANNELS[0]) * ADJACENT_CHANNELS[0];
        let to = b.group_id(0) * GROUP[1]
            + bits(0, ADJACENT_CHANNELS[1])
            + bits(shifts[1], GROUP[1] / ADJACENT_CHANNELS[1]) * ADJACENT_CHANNELS[1];
        b.if_(from.lt(read) & to.lt(written), || {
            let first = from * steps[0] + to * steps[1];
            let taps: [[Value; TAPS]; TAPS] = from_fn(|i| {
                from_fn(|j| {
                    let at = (i * TAPS + j) as u32;
                    let at = if self.turned { (TAPS * TAPS) as u32 - 1 - at } else { at };
                    weight.load(first + tap * at)
                })
            });
            range::check(b, taps.into_iter().flatten(), found);
            let transformed: [[Value; POINTS]; POINTS] = along_both(taps, filter);
            for (point, &x) in (0u32..).zip(transformed.iter().flatten()) {
                out.store((read * point + from) * written + to, x);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for turned in [false, true] {
            accepted(&Spec { turned }.build());
        }
    }
}
