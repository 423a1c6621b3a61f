//! Fake quantisation whose scale and zero point follow from the range of what was seen: a moving average of the least and the
//! largest numbers.
//!
//! Scale and zero point are chosen as B. Jacob et al. have it, "Quantization and training of neural networks for efficient
//! integer-arithmetic-only inference", CVPR 2018: the range is widened to hold 0, which becomes an integer.

use super::fake_quantize::{Quantizer, ZeroPoint, of_channels, single, with_mask};
use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::reduction::{Axes, extremum};
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::interface::{I32, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};

operators! {
    observe(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant) {
        "aten::_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
    }
}

/// The smallest scale that the CPU chooses.
const LEAST_SCALE: f32 = 6.1e-5;

/// Both switches are looked at by the device alone. With a quantiser a channel (`rows`), state without elements is made of the
/// channels' number, as on CUDA.
#[expect(clippy::too_many_arguments, reason = "the operator's own")]
fn observe(
    call: &mut Call,
    x: &Tensor,
    observing: &Tensor,
    quantizing: &Tensor,
    running_min: &Tensor,
    running_max: &Tensor,
    scale: &Tensor,
    zero: &Tensor,
    share: f64,
    min: i64,
    max: i64,
    axis: i64,
    rows: bool,
    symmetric: bool,
) -> Result<()> {
    check!(
        axis < x.dim() as i64,
        Runtime,
        "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
    );
    check!(x.dtype == DType::F32, Runtime, "expected scalar type Float but found {}", x.dtype);
    let axis = call.wrap_dim(axis, x.dim())?;
    let channels = if rows { call.size_of(x, axis)? } else { 1 };
    let mut state = [running_min, running_max, scale, zero].map(Tensor::clone);
    if rows && running_min.numel() == 0 {
        for (t, value) in state.iter_mut().zip([f64::INFINITY, f64::NEG_INFINITY, 1.0, 0.0]) {
            call.host.resize(t, &[channels], &[1])?;
            fill_with(call, t, Number::Double(value))?;
        }
    }
    for (t, dtype) in state.iter().zip([DType::F32, DType::F32, DType::F32, zero.dtype]) {
        check!(
            t.dtype == dtype && t.is_contiguous() && t.numel() == channels,
            Runtime,
            "{}: running extrema, scale and zero point should be contiguous float32 tensors of {channels} elements, got {}",
            call.name,
            t.describe()
        );
    }
    check!(
        matches!(zero.dtype, DType::I32 | DType::I64),
        Runtime,
        "{}: zero_point should be int32 or int64, got {}",
        call.name,
        zero.dtype
    );
    let count = observing.numel();
    check!(count == 1, Runtime, "{}: observer_on should have one element, not {count}", call.name);
    let enabled = Some(single(call, quantizing, "fake_quant_on")?);
    let others: Dims = (0..x.dim() as i64).filter(|&d| d != axis as i64).collect();
    let axes = if rows { Axes::listed(call, &others, x.dim(), false)? } else { Axes::all(false) };
    check!(
        axes.extent(&x.sizes) > 0,
        Runtime,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    );
    if channels > 0 {
        let [least, largest] = [call.empty(DType::F32, &[channels])?, call.empty(DType::F32, &[channels])?];
        extremum::both(call, &as_contiguous(call, x)?, [&least, &largest], axes)?;
        let [running_min, running_max, scale, zero] = &state;
        let spec = Observe {
            zero: zero.dtype,
            observing: observing.dtype,
            quantizing: quantizing.dtype,
            symmetric,
            wide: call.device.info().capabilities.f64,
        };
        let arguments = ObserveArguments {
            least: &least,
            largest: &largest,
            observing,
            quantizing,
            running_min,
            running_max,
            scale,
            zero,
            share: Number::Double(share),
            min: min as i32,
            max: max as i32,
            channels: channels as u32,
        };
        call.run_threads(&spec, &arguments, channels as u64)?;
    }
    let [_, _, scale, zero] = &state;
    let quantizer = if rows {
        Quantizer { enabled, ..of_channels(x, scale, zero, axis, [min, max]) }
    } else {
        let (scale, zero) = (single(call, scale, "scale")?, single(call, zero, "zero_point")?);
        Quantizer { scale, zero, kind: ZeroPoint::Common, enabled, bounds: [min, max] }
    };
    with_mask(call, x, quantizer)
}

/// Brings the state of each channel up to date.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Observe {
    zero: DType,
    observing: DType,
    quantizing: DType,
    symmetric: bool,
    /// Scale and zero point are computed in float64, as on the CPU.
    wide: bool,
}

parameters! {
    Observe as s => ObserveArguments, ObserveParameters {
        /// The extrema of what is observed.
        least: Input = DType::F32,
        largest: Input = DType::F32,
        /// Whether it counts.
        observing: Input = s.observing,
        /// Whether scale and zero point are chosen.
        quantizing: Input = s.quantizing,
        running_min: Output = DType::F32,
        running_max: Output = DType::F32,
        scale: Output = DType::F32,
        zero: Output = s.zero,
        /// How much what is observed counts.
        share: InDType = DType::F32,
        /// The integers' range.
        min: I32,
        max: I32,
        channels: U32,
    }
}

impl KernelSpec for Observe {
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

impl Observe {
    /// Scale (f32) and zero point (i32) of a range of numbers, for a range of integers.
    fn choose<'b>(&self, [min, max]: [Value<'b>; 2], [low, high]: [Value<'b>; 2]) -> (Value<'b>, Value<'b>) {
        let scalar = if self.wide { ScalarType::F64 } else { ScalarType::F32 };
        let (float, wide) = (|x: Value<'b>| x.cast(ScalarType::F32), |x: Value<'b>| x.cast(scalar));
        let levels = high - low;
        let (mut min, mut max) = (min, max);
        let around_zero = min.lt(0.0) & max.gt(0.0);
        if self.symmetric {
            let up = float(levels / 2);
            let down = -(up + 1.0);
            let scale = (min / down).abs().larger((max / up).abs());
            (min, max) = (around_zero.select(scale * down, min), around_zero.select(scale * up, max));
        }
        // The range holds 0, which must be an integer.
        min = min.gt(0.0).select(min.like(0.0), min);
        max = max.lt(0.0).select(max.like(0.0), max);
        let scale = float((wide(max) - wide(min)) / wide(levels));
        let scale = (scale.eq(0.0) | math::reciprocal(scale).is_inf()).select(scale.like(f64::from(0.1f32)), scale);
        let least = scale.like(f64::from(LEAST_SCALE));
        let small = scale.lt(LEAST_SCALE);
        let grown = least / scale;
        let end = least * float(levels);
        let (no_min, no_max) = (min.eq(0.0), max.eq(0.0));
        let wider_min = no_max.select(-end, min * grown);
        let wider_max = no_min.select(end, max * grown);
        min = (small & !no_min).select(wider_min, min);
        max = (small & (no_min | !no_max)).select(wider_max, max);
        let scale = small.select(least, scale);

        let (from_min, from_max) = (wide(min) / wide(scale), wide(max) / wide(scale));
        let (low_end, high_end) = (wide(low), wide(high));
        let nearer = (low_end.abs() + from_min.abs()).lt(high_end.abs() + from_max.abs());
        let mut zero = nearer.select(low_end - from_min, high_end - from_max);
        if self.symmetric {
            zero = around_zero.select(wide(low + high) * 0.5, zero);
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
        for (zero, on, symmetric, wide) in [
            (DType::I32, DType::I64, false, true),
            (DType::I64, DType::U8, true, false),
            (DType::I32, DType::Bool, true, true),
        ] {
            accepted(&Observe { zero, observing: on, quantizing: DType::I64, symmetric, wide }.build());
        }
    }
}
