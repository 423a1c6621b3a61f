//! The CTC loss.

use crate::context::Context;
use crate::error::Result;
use crate::loss::ctc::paths::fill_paths;
use crate::loss::ctc::problem::{Problem, SizesOf, Spec};
use crate::loss::ctc::states::log_sum;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

/// Writes the loss of each example (`[batch]`), and `alpha` (see [`Problem::paths`]): the logarithm
/// of the probability of all paths from the first frame to each state at each frame.
pub fn losses(cx: &Context, p: &Problem, loss: &View, alpha: &View) -> Result<()> {
    fill_with(cx, alpha, Number::Double(f64::NEG_INFINITY))?;
    fill_paths(cx, p, alpha, false)?;
    let batch = p.sizes.batch;
    if batch == 0 {
        return Ok(());
    }
    let arguments = Arguments { loss, alpha, lengths: &p.lengths, sizes: p.sizes };
    cx.run_threads(&LossSpec(p.spec()), &arguments, batch as u64)
}

/// The paths that end in one of the last two states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LossSpec(Spec);

parameters! {
    LossSpec as s => Arguments, Parameters {
        loss: Output = s.0.dtype,
        alpha: Input = s.0.dtype,
        lengths: Input = DType::I64,
        sizes: SizesOf = s.0.index,
    }
}

impl KernelSpec for LossSpec {
    fn name(&self) -> &'static str {
        "ctc_loss"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { loss, alpha, lengths, sizes } = p;
        let Spec { dtype, index, .. } = self.0;
        let i = linear_id(b, index);
        b.if_(i.lt(sizes.batch), || {
            let (own, labels) = (lengths.load(i).cast(index), lengths.load(sizes.batch + i).cast(index));
            let none = b.float(dtype.compute(), f64::NEG_INFINITY);
            let (last, before) = (b.var(none), b.var(none));
            b.if_else(
                own.eq(0),
                // No frames have a path only for no labels.
                || b.if_(labels.eq(0), || last.set(0.0)),
                || {
                    let at = (i * sizes.frames + own - 1) * sizes.states + 2 * labels;
                    last.set(alpha.load(at));
                    b.if_(labels.gt(0), || before.set(alpha.load(at - 1)));
                },
            );
            loss.store(i, -log_sum(&[last.get(), before.get()]));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&LossSpec(Spec { dtype, targets: DType::I64, index }).build());
        }
    }
}
