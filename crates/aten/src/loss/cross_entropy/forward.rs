//! Cross-entropy: of each target, or summed.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::loss::cross_entropy::forward::{ForwardArguments, ForwardSpec, Total};
use dml_compute::loss::cross_entropy::problem::NAME;
use dml_compute::loss::reduce::Reduce;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::fold::Reduction;
use dml_compute::reduction::reduce;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    // The loss, in float32 for logits of 16 bits if `widen`; of each row its largest logit and,
    // below these, the logarithms of its sum; for a mean, what the sum of losses was divided by.
    forward(self, target, weight, reduction, ignore_index, label_smoothing, widen) {
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
    let p = crate::loss::cross_entropy::problem::checked(call, input, target, weight, reduction, ignore, smoothing)?;
    let computed = p.computed();
    let dtype = if widen { computed } else { input.dtype };
    let statistics = call.empty(computed, &[2, p.extent.rows])?;
    let each = p.reduction == Reduce::None;
    let losses = call.empty(if each { dtype } else { computed }, &p.target.sizes)?;
    let of = p.spec(&[]);
    let groups = of.rows.rows.groups(&p.extent);
    let arguments = ForwardArguments {
        losses: &losses,
        statistics: &statistics,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        fault: call.fault_of_index_in(NAME),
        ignore: p.ignore,
        smoothing: Number::Double(p.smoothing),
        extent: p.extent,
    };
    call.run(&ForwardSpec { of, losses: losses.dtype }, &arguments, groups)?;
    let (loss, total) = if each {
        (losses, None)
    } else {
        let (loss, total) = (call.empty(dtype, &[])?, call.empty(computed, &[])?);
        let fold = Total { scalar: computed.compute(), mean: p.reduction == Reduce::Mean };
        let tables: SmallVec<[&View; 1]> = p.weight.iter().collect();
        let long = |x: i64| (DType::I64, Number::Int(x));
        let operands = Reduction {
            inputs: &[&p.target, &losses],
            outs: &[&loss, &total],
            axes: Axes::all(false),
            tables: &tables,
            numbers: &[long(p.ignore), long(p.extent.n)],
        };
        reduce(call, &fold, &operands)?;
        (loss, Some(total))
    };
    call.ret(loss);
    call.ret(statistics);
    call.ret_optional(total);
    Ok(())
}
