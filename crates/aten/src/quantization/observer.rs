//! Fake quantisation whose scale and zero point follow from the range of what was seen: a moving
//! average of the least and the largest numbers.
//!
//! Scale and zero point are chosen as B. Jacob et al. have it, "Quantization and training of neural
//! networks for efficient integer-arithmetic-only inference", CVPR 2018: the range is widened to
//! hold 0, which becomes an integer.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::quantization::fake_quantize::{Quantizer, of_channels, single, with_mask};
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::quantization::fake_quantize::ZeroPoint;
use dml_compute::quantization::observer::{Observe, ObserveArguments};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::extremum;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    observe(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant) {
        "aten::_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
    }
}

/// Both switches are looked at by the device alone. With a quantiser a channel (`rows`), state
/// without elements is made of the channels' number, as on CUDA.
#[expect(clippy::too_many_arguments, reason = "the operator's own")]
fn observe(
    call: &mut Call,
    x: &View,
    observing: &View,
    quantizing: &View,
    running_min: &View,
    running_max: &View,
    scale: &View,
    zero: &View,
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
