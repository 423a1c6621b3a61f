//! The gradient of the negative log-likelihood.

use super::problem::{Problem, Rank, Spec};
use crate::loss::reduce::Reduce;
use crate::movement::copy;
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_engine::interface::{I64, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, ScalarType};

operators! {
    backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out; Rank::Rows) {
        "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out; Rank::Images) {
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

fn backward(
    call: &mut Call,
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
    total_weight: &Tensor,
    out: Out,
    rank: Rank,
) -> Result<()> {
    let p = Problem::new(call, rank, input, target, weight, reduction, ignore)?;
    if p.reduction == Reduce::None {
        check!(
            grad.sizes == p.target.sizes || grad.numel() == p.target.numel(),
            Runtime,
            "Expected a tensor of shape {:?} for grad_output, but got {:?}",
            p.target.sizes.as_slice(),
            grad.sizes.as_slice()
        );
    } else {
        check!(
            grad.numel() == 1,
            Runtime,
            "Expected a single element grad_output tensor, but got: {:?}",
            grad.sizes.as_slice()
        );
    }
    let grad = copy::as_contiguous(call, grad)?;
    let result = structured::result(call, out.given(), p.input.dtype, &p.input.sizes)?;
    if result.numel() > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(result.dtype, &result.sizes)? };
        copy::fill_with(call, &dense, Scalar::Int(0))?;
        let targets = p.target.numel();
        let arguments = BackwardArguments {
            grad_input: &dense,
            grad: &grad,
            target: &p.target,
            total_weight,
            weight: p.weight.as_ref(),
            ignore: p.ignore,
            classes: p.classes,
            positions: p.positions,
            targets,
        };
        call.run_threads(&BackwardSpec { of: p.spec(), reduction: p.reduction }, &arguments, targets as u64)?;
        if dense.data != result.data {
            copy::device_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}

/// The gradient where it is not 0: at every target's class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardSpec {
    of: Spec,
    reduction: Reduce,
}

parameters! {
    BackwardSpec as s => BackwardArguments, BackwardParameters {
        grad_input: Output = s.of.dtype,
        grad: Input = s.of.dtype,
        target: Input = s.of.target,
        total_weight: Input = s.of.dtype,
        weight: Option<Input> = s.of.weight(),
        ignore: I64,
        classes: Index = s.of.index,
        positions: Index = s.of.index,
        targets: Index = s.of.index,
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "nll_loss_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { grad_input, grad, target, total_weight, weight, ignore, classes, positions, targets } =
            p;
        let at = linear_id(b, self.of.index);
        b.if_(at.lt(targets), || {
            let class = target.load(at).cast(ScalarType::I64);
            let exists = class.ge(0) & class.lt(classes.cast(ScalarType::I64));
            b.if_(exists & class.ne(ignore), || {
                let class = class.cast(self.of.index);
                let g = match self.reduction {
                    Reduce::None => grad.load(at),
                    Reduce::Mean => grad.load(0) / total_weight.load(0),
                    Reduce::Sum => grad.load(0),
                };
                let g = match weight {
                    Some(w) => g * w.load(class),
                    None => g,
                };
                let batch = at / positions;
                grad_input.store((batch * classes + class) * positions + (at - batch * positions), -g);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        let narrow = Spec { dtype: DType::BF16, target: DType::U8, weighted: false, index: ScalarType::U32 };
        let wide = Spec { dtype: DType::F64, target: DType::I64, weighted: true, index: ScalarType::U64 };
        for of in [narrow, wide] {
            for reduction in [Reduce::None, Reduce::Mean, Reduce::Sum] {
                accepted(&BackwardSpec { of: of.clone(), reduction }.build());
            }
        }
    }
}
