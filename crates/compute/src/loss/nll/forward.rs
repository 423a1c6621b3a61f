//! The negative log-likelihood: for each target, or reduced.

use crate::context::Context;
use crate::error::Result;
use crate::fault::{Fault, Refusal, Reporter};
use crate::loss::nll::problem::{Problem, Spec};
use crate::loss::reduce::Reduce;
use crate::movement::copy;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Refusals, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{I64, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// The operands for computing the term of one target.
struct TermInputs<'b> {
    b: &'b Builder,
    input: Pointer<'b>,
    weight: Option<Pointer<'b>>,
    fault: Reporter<'b>,
    ignore: Value<'b>,
    classes: Value<'b>,
    positions: Value<'b>,
    index: ScalarType,
}

impl<'b> TermInputs<'b> {
    /// Loss and weight of the target `t` at position `at`, zeros if it is ignored. An invalid class
    /// is reported.
    fn term(&self, t: Value<'b>, at: Value<'b>) -> [Value<'b>; 2] {
        let t = t.cast(ScalarType::I64);
        let counts = t.ne(self.ignore);
        let exists = t.ge(0) & t.lt(self.classes);
        self.b.if_(counts & !exists, || self.fault.report(t, self.classes, 1));
        let counts = counts & exists;
        let class = counts.select(t, 0);
        let (classes, positions) = (self.classes.cast(self.index), self.positions.cast(self.index));
        let at = at.cast(self.index);
        let batch = at / positions;
        let offset = (batch * classes + class.cast(self.index)) * positions + (at - batch * positions);
        let x = self.input.load(offset);
        let weight = match self.weight {
            Some(w) => w.load(class),
            None => x.like(1.0),
        };
        let zero = x.like(0.0);
        [counts.select(-(x * weight), zero), counts.select(weight, zero)]
    }
}

/// The name in errors, and the kernel's name.
const NAME: &str = "nll_loss";

/// Sums losses and weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    dtype: DType,
    mean: bool,
    weighted: bool,
    /// Integer type of indices in the input, which is larger than the targets.
    index: ScalarType,
}

impl Total {
    fn scalar(&self) -> ScalarType {
        self.dtype.compute()
    }
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar(); 2]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar(), 0.0); 2]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        let Some(&fault) = s.faults.first() else { return self.identity(s) };
        let terms = TermInputs {
            b: s.b,
            input: s.tables[0],
            weight: self.weighted.then(|| s.tables[1]),
            fault,
            ignore: s.numbers[0],
            classes: s.numbers[1],
            positions: s.numbers[2],
            index: self.index,
        };
        terms.term(elements[0], at).into_iter().collect()
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / x[1] } else { x[0] }, x[1]]
    }

    fn ordered(&self) -> bool {
        true
    }

    fn refusals(&self) -> Refusals {
        smallvec![Refusal::Index(NAME)]
    }
}

/// Losses without reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnreducedSpec(Spec);

parameters! {
    UnreducedSpec as s => EachArguments, EachParameters {
        output: Output = s.0.dtype,
        target: Input = s.0.target,
        input: Input = s.0.dtype,
        weight: Option<Input> = s.0.weight(),
        fault: Fault,
        ignore: I64,
        classes: I64,
        positions: I64,
        /// Number of targets.
        numel: Index = s.0.index,
    }
}

impl KernelSpec for UnreducedSpec {
    fn name(&self) -> &'static str {
        "nll_loss_each"
    }

    fn write<'b>(&self, b: &'b Builder, p: EachParameters<'b>) {
        let EachParameters { output, target, input, weight, fault, ignore, classes, positions, numel } = p;
        let index = self.0.index;
        let terms = TermInputs { b, input, weight, fault, ignore, classes, positions, index };
        let i = linear_id(b, index);
        b.if_(i.lt(numel), || output.store(i, terms.term(target.load(i), i)[0]));
    }
}

/// Writes the sum of all losses, or their mean, to `output`; and the sum of the targets' weights to
/// `total`. Both have no dimensions and the input's dtype.
pub fn reduced(cx: &Context, p: &Problem, output: &View, total: &View) -> Result<()> {
    let Spec { dtype, weighted, index, .. } = p.spec();
    let fold = Total { dtype, mean: p.reduction == Reduce::Mean, weighted, index };
    let mut tables: SmallVec<[&View; 2]> = smallvec![&p.input];
    tables.extend(p.weight.as_ref());
    let long = |x: i64| (DType::I64, Number::Int(x));
    let operands = Reduction {
        inputs: &[&p.target],
        outs: &[output, total],
        axes: Axes::all(false),
        tables: &tables,
        numbers: &[long(p.ignore), long(p.classes), long(p.positions)],
    };
    reduce(cx, &fold, &operands)
}

/// Writes the loss of each target to `output`, of the targets' shape and the input's dtype.
pub fn each(cx: &Context, p: &Problem, output: &View) -> Result<()> {
    let numel = p.target.numel();
    if numel == 0 {
        return Ok(());
    }
    let dense = if output.is_contiguous() { output.clone() } else { cx.empty(output.dtype, &output.sizes)? };
    let arguments = EachArguments {
        output: &dense,
        target: &p.target,
        input: &p.input,
        weight: p.weight.as_ref(),
        fault: cx.fault_of_index_in(NAME),
        ignore: p.ignore,
        classes: p.classes,
        positions: p.positions,
        numel,
    };
    cx.run_threads(&UnreducedSpec(p.spec()), &arguments, numel as u64)?;
    if dense.data != output.data {
        copy::device_copy(cx, &dense, output)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let narrow = Spec { dtype: DType::BF16, target: DType::U8, weighted: false, index: ScalarType::U32 };
        let wide = Spec { dtype: DType::F64, target: DType::I64, weighted: true, index: ScalarType::U64 };
        for spec in [narrow, wide] {
            accepted(&UnreducedSpec(spec).build());
        }
    }
}
