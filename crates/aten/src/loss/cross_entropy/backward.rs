//! The gradient of cross-entropy: `(softmax - one hot) * scale`, with a scale for each row.

use crate::loss::cross_entropy::problem::{Given, prepared};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, operators};
use dml_compute::loss::cross_entropy::backward::gradient;
use dml_compute::loss::reduce::Reduce;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::view::View;

operators! {
    backward(grad_output, self, {Options}, statistics, total).declines() {
        "torch_dml::cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, float label_smoothing, Tensor statistics, Tensor? total) -> Tensor",
    }
}

group! {
    /// What the loss took beside its input.
    struct Options<'a> {
        target: &'a View,
        weight: Option<&'a View>,
        reduction: i64,
        ignore_index: i64,
        label_smoothing: f64,
    }
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    options: Options,
    statistics: &View,
    total: Option<&View>,
) -> Result<()> {
    let Options { target, weight, reduction, ignore_index: ignore, label_smoothing: smoothing } = options;
    let given = Given { input, target, weight, reduction, ignore, smoothing, widen: true };
    check!(
        given.is_fused(),
        Runtime,
        "{}: expected logits and the indices of classes, but got {} and {}",
        call.name,
        input.describe(),
        target.describe()
    );
    let p = prepared(call, given)?;
    let total = total.filter(|_| p.reduction == Reduce::Mean);
    check!(
        statistics.sizes[..] == [2, p.extent.rows]
            && statistics.dtype == p.computed()
            && statistics.is_contiguous()
            && grad.dtype.is_float()
            && grad.numel() == if p.reduction == Reduce::None { p.target.numel() } else { 1 }
            && total.map_or(p.reduction != Reduce::Mean, |t| t.numel() == 1 && t.dtype == p.computed()),
        Runtime,
        "{}: a gradient {} and statistics {} do not belong to {}",
        call.name,
        grad.describe(),
        statistics.describe(),
        input.describe()
    );
    let grad = as_contiguous(call, grad)?;
    let out = call.empty_strided(p.input.dtype, &p.input.sizes, &p.input.strides)?;
    gradient(call, &p, &grad, statistics, total, &out)?;
    call.ret(out);
    Ok(())
}
