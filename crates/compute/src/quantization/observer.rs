//! Fake quantisation whose scale and zero point follow from the observed range: a moving average of
//! minimum and maximum.
//!
//! Scale and zero point are chosen as by B. Jacob et al., "Quantization and training of neural
//! networks for efficient integer-arithmetic-only inference", CVPR 2018: the range is extended to
//! include 0, which becomes an integer.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{I32, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

/// The smallest scale that the CPU chooses.
const MIN_SCALE: f32 = 6.1e-5;

/// An observation, and its parameters. Tensors are contiguous.
pub struct Observation<'t> {
    /// The minimum of each channel, float32.
    pub least: &'t View,
    /// The maximum of each channel, float32.
    pub largest: &'t View,
    /// One element: nonzero if running minimum and maximum are updated.
    pub observing: &'t View,
    /// One element: nonzero if scale and zero point are computed.
    pub quantizing: &'t View,
    /// The observation's weight in the moving average.
    pub share: f64,
    /// The smallest and the largest integer.
    pub bounds: [i64; 2],
    /// The range is extended to be symmetric around 0.
    pub symmetric: bool,
}

/// Updates the state of each channel: running minimum and maximum and scale (float32), and zero
/// point (int32 or int64), one number per channel each, contiguous and not empty.
pub fn observe(cx: &Context, of: &Observation, state: [&View; 4]) -> Result<()> {
    let [running_min, running_max, scale, zero] = state;
    let channels = zero.numel();
    let spec = UpdateObserver {
        zero: zero.dtype,
        observing: of.observing.dtype,
        quantizing: of.quantizing.dtype,
        symmetric: of.symmetric,
        in_float64: cx.device.info().capabilities.f64,
    };
    let arguments = ObserveArguments {
        least: of.least,
        largest: of.largest,
        observing: of.observing,
        quantizing: of.quantizing,
        running_min,
        running_max,
        scale,
        zero,
        share: Number::Double(of.share),
        min: of.bounds[0] as i32,
        max: of.bounds[1] as i32,
        channels: channels as u32,
    };
    cx.run_threads(&spec, &arguments, channels as u64)
}

/// Updates the state of each channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UpdateObserver {
    zero: DType,
    observing: DType,
    quantizing: DType,
    symmetric: bool,
    /// Scale and zero point are computed in float64, as on the CPU.
    in_float64: bool,
}

parameters! {
    UpdateObserver as s => ObserveArguments, ObserveParameters {
        /// The observed minimum and maximum.
        least: Input = DType::F32,
        largest: Input = DType::F32,
        /// Whether the observation is used.
        observing: Input = s.observing,
        /// Whether scale and zero point are computed.
        quantizing: Input = s.quantizing,
        running_min: Output = DType::F32,
        running_max: Output = DType::F32,
        scale: Output = DType::F32,
        zero: Output = s.zero,
        /// The observation's weight.
        share: InDType = DType::F32,
        /// The integers' range.
        min: I32,
        max: I32,
        channels: U32,
    }
}

impl KernelSpec for UpdateObserver {
    fn name(&self) -> &'static str {
        "observe"
    }

    fn write<'b>(&self, b: &'b Builder, p: ObserveParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.channels), || {
            let [observing, quantizing] = [p.observing, p.quantizing].map(|switch| {
                let on = switch.load(0);
                if on.scalar() == ScalarType::Bool { on } else { on.ne(0) }
            });
            let averaged = |seen: Value<'b>, running: Value<'b>| {
                let moved = running.is_inf().select(seen, running + p.share * (seen - running));
                observing.select(moved, running)
            };
            let min = averaged(p.least.load(i), p.running_min.load(i));
            let max = averaged(p.largest.load(i), p.running_max.load(i));
            p.running_min.store(i, min);
            p.running_max.store(i, max);
            b.if_(quantizing, || {
                let (scale, zero) = self.choose([min, max], [p.min, p.max]);
                p.scale.store(i, scale);
                p.zero.store(i, zero);
            });
        });
    }
}

impl UpdateObserver {
    /// Scale (f32) and zero point (i32) of a range of numbers, for a range of integers.
    fn choose<'b>(&self, [min, max]: [Value<'b>; 2], [low, high]: [Value<'b>; 2]) -> (Value<'b>, Value<'b>) {
        let scalar = if self.in_float64 { ScalarType::F64 } else { ScalarType::F32 };
        let (float, in_float64) = (|x: Value<'b>| x.cast(ScalarType::F32), |x: Value<'b>| x.cast(scalar));
        let levels = high - low;
        let (mut min, mut max) = (min, max);
        let around_zero = min.lt(0.0) & max.gt(0.0);
        if self.symmetric {
            let up = float(levels / 2);
            let down = -(up + 1.0);
            let scale = (min / down).abs().larger((max / up).abs());
            (min, max) = (around_zero.select(scale * down, min), around_zero.select(scale * up, max));
        }
        // The range includes 0, which must be an integer.
        min = min.gt(0.0).select(min.like(0.0), min);
        max = max.lt(0.0).select(max.like(0.0), max);
        let scale = float((in_float64(max) - in_float64(min)) / in_float64(levels));
        let scale = (scale.eq(0.0) | math::reciprocal(scale).is_inf()).select(scale.like(f64::from(0.1f32)), scale);
        let least = scale.like(f64::from(MIN_SCALE));
        let small = scale.lt(MIN_SCALE);
        let grown = least / scale;
        let end = least * float(levels);
        let (no_min, no_max) = (min.eq(0.0), max.eq(0.0));
        let wider_min = no_max.select(-end, min * grown);
        let wider_max = no_min.select(end, max * grown);
        min = (small & !no_min).select(wider_min, min);
        max = (small & (no_min | !no_max)).select(wider_max, max);
        let scale = small.select(least, scale);

        let (from_min, from_max) = (in_float64(min) / in_float64(scale), in_float64(max) / in_float64(scale));
        let (low_end, high_end) = (in_float64(low), in_float64(high));
        let nearer = (low_end.abs() + from_min.abs()).lt(high_end.abs() + from_max.abs());
        let mut zero = nearer.select(low_end - from_min, high_end - from_max);
        if self.symmetric {
            zero = around_zero.select(in_float64(low + high) * 0.5, zero);
        }
        let inside = zero.round().cast(ScalarType::I32);
        (scale, zero.lt(low_end).select(low, zero.gt(high_end).select(high, inside)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (zero, on, symmetric, in_float64) in [
            (DType::I32, DType::I64, false, true),
            (DType::I64, DType::U8, true, false),
            (DType::I32, DType::Bool, true, true),
        ] {
            accepted(&UpdateObserver { zero, observing: on, quantizing: DType::I64, symmetric, in_float64 }.build());
        }
    }
}
