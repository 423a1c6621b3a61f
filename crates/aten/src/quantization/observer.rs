//! Fake quantisation whose scale and zero point follow from the observed range: a moving average of
//! minimum and maximum.
//!
//! Scale and zero point are chosen as by B. Jacob et al., "Quantization and training of neural
//! networks for efficient integer-arithmetic-only inference", CVPR 2018: the range is extended to
//! include 0, which becomes an integer.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::quantization::fake_quantize::{of_channels, single, with_mask};
use crate::{check, group, operators};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::quantization::fake_quantize::{Quantizer, ZeroPoint};
use dml_compute::quantization::observer::{self, Observation};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::extremum;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    observe(self, {State}, {Options}) {
        "aten::_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
    }
}

group! {
    /// What an observer keeps: two switches, the range, and what follows from it.
    pub struct State<'a> {
        observer_on: &'a View,
        fake_quant_on: &'a View,
        running_min: &'a View,
        running_max: &'a View,
        scale: &'a View,
        zero_point: &'a View,
    }
}

group! {
    /// The numbers of an observer.
    pub struct Options {
        /// The share of the new range in the moving average.
        averaging_const: f64,
        quant_min: i64,
        quant_max: i64,
        ch_axis: i64,
        /// Each channel has its own scale and zero point.
        per_row_fake_quant: bool,
        symmetric_quant: bool,
    }
}

/// Only the device reads the two switches. With one quantiser per channel (`rows`), empty state is
/// resized to the number of channels, as on CUDA.
pub fn observe(call: &mut Call, x: &View, given: State, options: Options) -> Result<()> {
    let State { observer_on: observing, fake_quant_on: quantizing, running_min, running_max, scale, zero_point: zero } =
        given;
    let Options { quant_min: min, quant_max: max, ch_axis: axis, per_row_fake_quant: rows, .. } = options;
    check!(
        axis < x.dim() as i64,
        Runtime,
        "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()"
    );
    check!(x.dtype == DType::F32, Runtime, "expected scalar type Float but found {}", x.dtype);
    let axis = call.wrap_dim(axis, x.dim())?;
    let channels = if rows { call.size_of(x, axis)? } else { 1 };
    let mut state = [running_min, running_max, scale, zero].map(View::clone);
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
    let axes =
        if rows { crate::reduction::axes::axes_listed(call, &others, x.dim(), false)? } else { Axes::all(false) };
    check!(
        axes.extent(&x.sizes) > 0,
        Runtime,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    );
    if channels > 0 {
        let [least, largest] = [call.empty(DType::F32, &[channels])?, call.empty(DType::F32, &[channels])?];
        extremum::both(call, &as_contiguous(call, x)?, [&least, &largest], axes)?;
        let observation = Observation {
            least: &least,
            largest: &largest,
            observing,
            quantizing,
            share: options.averaging_const,
            bounds: [min, max],
            symmetric: options.symmetric_quant,
        };
        observer::observe(call, &observation, state.each_ref())?;
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
