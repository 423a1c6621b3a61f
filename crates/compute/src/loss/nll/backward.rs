//! The gradient of the negative log-likelihood.

use crate::context::Context;
use crate::error::Result;
use crate::loss::nll::problem::{Problem, Spec};
use crate::loss::reduce::Reduce;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::{I64, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, ScalarType};

/// Writes the gradient of the input where it is not 0 to `out`: contiguous, of the input's shape,
/// filled with zeros. `grad` is the gradient of the loss: one number, or one per target if losses
/// are not reduced. `total_weight` is the divisor of a mean. All have the input's dtype.
pub fn gradient(cx: &Context, p: &Problem, grad: &View, total_weight: &View, out: &View) -> Result<()> {
    let targets = p.target.numel();
    let arguments = BackwardArguments {
        grad_input: out,
        grad,
        target: &p.target,
        total_weight,
        weight: p.weight.as_ref(),
        ignore: p.ignore,
        classes: p.classes,
        positions: p.positions,
        targets,
    };
    cx.run_threads(&BackwardSpec { of: p.spec(), reduction: p.reduction }, &arguments, targets as u64)
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
