//! What `torch.amp.GradScaler` does on the device: gradients are freed of the loss scale and
//! searched for overflows, and the scale is adapted (Micikevicius et al., "Mixed precision
//! training", 2018).

use crate::operator::argument::Tensors;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::lists::loss_scale::{self, Adaption};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    unscale(self, found_inf, inv_scale) {
        hot "aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    }
    update(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval) {
        "aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    }
}

/// Multiplies every tensor of the list by `inv_scale`, and makes `found_inf` 1 if an element was
/// infinite or NaN before.
fn unscale(call: &mut Call, list: Tensors, found: &View, factor: &View) -> Result<()> {
    for (t, name) in [(factor, "inv_scale"), (found, "found_inf")] {
        check!(t.numel() == 1, Runtime, "{name} must be a 1-element tensor.");
        check!(t.dtype == DType::F32, Runtime, "{name} must be a float tensor.");
    }
    if list.is_empty() {
        return Ok(());
    }
    for t in &list {
        check!(
            t.dtype.is_float(),
            NotImplemented,
            "\"_amp_foreach_non_finite_check_and_unscale_\" not implemented for '{}'",
            t.dtype
        );
    }
    Ok(loss_scale::unscale(call, &list, found, factor)?)
}

/// The scale shrinks after an overflow, and grows after so many steps without one unless it would
/// overflow itself.
fn update(
    call: &mut Call,
    scale: &View,
    tracker: &View,
    found: &View,
    growth: f64,
    backoff: f64,
    interval: i64,
) -> Result<()> {
    for (t, name, dtype, kind) in [
        (tracker, "growth_tracker", DType::I32, "an int"),
        (scale, "current_scale", DType::F32, "a float"),
        (found, "found_inf", DType::F32, "a float"),
    ] {
        check!(t.numel() == 1, Runtime, "{name} must be a 1-element tensor.");
        check!(t.dtype == dtype, Runtime, "{name} must be {kind} tensor.");
    }
    let interval = interval.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    let adaption = Adaption { growth: growth as f32, backoff: backoff as f32, interval };
    adaption.run(call, scale, tracker, found)?;
    call.ret(scale.clone());
    Ok(())
}
