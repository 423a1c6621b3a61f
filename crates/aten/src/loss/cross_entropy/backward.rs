//! The gradient of cross-entropy: `(softmax - one hot) * scale`, with a scale for each row.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::loss::cross_entropy::backward::{BackwardArguments, BackwardSpec, unaligned};
use dml_compute::loss::reduce::Reduce;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    backward(grad_output, self, target, weight, reduction, ignore_index, label_smoothing, statistics, total) {
        "torch_dml::cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, float label_smoothing, Tensor statistics, Tensor? total) -> Tensor",
    }
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    target: &View,
    weight: Option<&View>,
    reduction: i64,
    ignore: i64,
    smoothing: f64,
    statistics: &View,
    total: Option<&View>,
) -> Result<()> {
    let p = crate::loss::cross_entropy::problem::checked(call, input, target, weight, reduction, ignore, smoothing)?;
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
    let of = p.spec(&[&out]);
    let groups = of.rows.rows.groups(&p.extent);
    let arguments = BackwardArguments {
        out: &out,
        grad: &grad,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        statistics,
        total,
        ignore: p.ignore,
        smoothing: Number::Double(p.smoothing),
        extent: p.extent,
    };
    let chunk = unaligned(&of.rows, p.extent.inner, of.input, &[p.input.data, out.data]);
    call.run(&BackwardSpec { of, grad: grad.dtype, reduction: p.reduction, chunk }, &arguments, groups)?;
    call.ret(out);
    Ok(())
}
