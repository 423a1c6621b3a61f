//! Cross-entropy: for each target, or reduced.

use crate::loss::cross_entropy::problem::{Given, prepared};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::loss::cross_entropy::forward::{self, reduced};
use dml_compute::loss::reduce::Reduce;
use dml_compute::view::View;

operators! {
    // The loss, in float32 for 16-bit logits if `widen`; for each row its largest logit and the
    // logarithm of the sum of exponentials relative to it; the divisor of a mean. Returns nothing
    // for arguments that the kernels do not support.
    forward(self, target, weight, reduction, ignore_index, label_smoothing, widen).declines() {
        "torch_dml::cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, float label_smoothing, bool widen) -> (Tensor, Tensor, Tensor)",
    }
}

fn forward(
    call: &mut Call,
    input: &View,
    target: &View,
    weight: Option<&View>,
    reduction: i64,
    ignore: i64,
    smoothing: f64,
    widen: bool,
) -> Result<()> {
    let given = Given { input, target, weight, reduction, ignore, smoothing, widen };
    if !given.is_fused() {
        call.decline(3);
        return Ok(());
    }
    let p = prepared(call, given)?;
    let computed = p.computed();
    let dtype = if widen { computed } else { input.dtype };
    let statistics = call.empty(computed, &[2, p.extent.rows])?;
    let each = p.reduction == Reduce::None;
    let losses = call.empty(if each { dtype } else { computed }, &p.target.sizes)?;
    forward::losses(call, &p, &losses, &statistics)?;
    let (loss, total) = if each {
        (losses, None)
    } else {
        let (loss, total) = (call.empty(dtype, &[])?, call.empty(computed, &[])?);
        reduced(call, &p, &losses, &loss, &total)?;
        (loss, Some(total))
    };
    call.ret(loss);
    call.ret(statistics);
    call.ret_optional(total);
    Ok(())
}
