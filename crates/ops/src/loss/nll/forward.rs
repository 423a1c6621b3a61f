//! The negative log-likelihood: of each target, or summed.

use super::problem::{Problem, Rank, Spec};
use crate::loss::reduce::Reduce;
use crate::movement::copy;
use crate::operator::argument::Outs;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::{Fault, Refusal, Reporter};
use crate::operator::structured;
use crate::operators;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::{Axes, Fold, Reduction, Refusals, Scope, Values, reduce};
use crate::tensor::{Dims, Tensor};
use dml_engine::interface::{I64, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

operators! {
    forward(self, target, weight, reduction, ignore_index, outs; Rank::Rows) {
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        "aten::nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    }
    forward(self, target, weight, reduction, ignore_index, outs; Rank::Images) {
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        "aten::nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    }
}

/// What a kernel needs to find the term of one target.
struct Terms<'b> {
    b: &'b Builder,
    input: Pointer<'b>,
    weight: Option<Pointer<'b>>,
    fault: Reporter<'b>,
    ignore: Value<'b>,
    classes: Value<'b>,
    positions: Value<'b>,
    index: ScalarType,
}

impl<'b> Terms<'b> {
    /// Loss and weight of the target `t` at position `at`, zeros where it is ignored. A class that does not exist is
    /// reported.
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

/// What errors call the operator, and the kernel's name.
const NAME: &str = "nll_loss";

/// Sums losses and weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    dtype: DType,
    mean: bool,
    weighted: bool,
    /// Index type of the input, which is longer than the targets.
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

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar(), 0.0); 2]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        let Some(&fault) = s.faults.first() else { return self.identity(s) };
        let terms = Terms {
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

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / x[1] } else { x[0] }, x[1]]
    }

    fn ordered(&self) -> bool {
        true
    }

    fn refusals(&self) -> Refusals {
        smallvec![Refusal::Index(NAME)]
    }
}

fn forward(
    call: &mut Call,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore: i64,
    outs: Outs,
    rank: Rank,
) -> Result<()> {
    let p = Problem::new(call, rank, input, target, weight, reduction, ignore)?;
    let sizes = if p.reduction == Reduce::None { p.target.sizes.clone() } else { Dims::new() };
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let output = structured::result(call, given(0), p.input.dtype, &sizes)?;
    let total = structured::result(call, given(1), p.input.dtype, &[])?;
    if p.reduction == Reduce::None {
        each(call, &p, &output)?;
        copy::fill_with(call, &total, Number::Int(0))?;
    } else {
        let Spec { dtype, weighted, index, .. } = p.spec();
        let fold = Total { dtype, mean: p.reduction == Reduce::Mean, weighted, index };
        let mut tables: SmallVec<[&Tensor; 2]> = smallvec![&p.input];
        tables.extend(p.weight.as_ref());
        let long = |x: i64| (DType::I64, Number::Int(x));
        let operands = Reduction {
            inputs: &[&p.target],
            outs: &[&output, &total],
            axes: Axes::all(false),
            tables: &tables,
            numbers: &[long(p.ignore), long(p.classes), long(p.positions)],
        };
        reduce(call, &fold, &operands)?;
    }
    call.ret(output);
    call.ret(total);
    Ok(())
}

/// Losses one by one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EachSpec(Spec);

parameters! {
    EachSpec as s => EachArguments, EachParameters {
        output: Output = s.0.dtype,
        target: Input = s.0.target,
        input: Input = s.0.dtype,
        weight: Option<Input> = s.0.weight(),
        fault: Fault,
        ignore: I64,
        classes: I64,
        positions: I64,
        /// Targets.
        numel: Index = s.0.index,
    }
}

impl KernelSpec for EachSpec {
    fn name(&self) -> &'static str {
        "nll_loss_each"
    }

    fn write<'b>(&self, b: &'b Builder, p: EachParameters<'b>) {
        let EachParameters { output, target, input, weight, fault, ignore, classes, positions, numel } = p;
        let index = self.0.index;
        let terms = Terms { b, input, weight, fault, ignore, classes, positions, index };
        let i = linear_id(b, index);
        b.if_(i.lt(numel), || output.store(i, terms.term(target.load(i), i)[0]));
    }
}

fn each(call: &Call, p: &Problem, output: &Tensor) -> Result<()> {
    let numel = p.target.numel();
    if numel == 0 {
        return Ok(());
    }
    let dense = if output.is_contiguous() { output.clone() } else { call.empty(output.dtype, &output.sizes)? };
    let arguments = EachArguments {
        output: &dense,
        target: &p.target,
        input: &p.input,
        weight: p.weight.as_ref(),
        fault: call.fault_of_index_in(NAME),
        ignore: p.ignore,
        classes: p.classes,
        positions: p.positions,
        numel,
    };
    call.run_threads(&EachSpec(p.spec()), &arguments, numel as u64)?;
    if dense.data != output.data {
        copy::device_copy(call, &dense, output)?;
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
            accepted(&EachSpec(spec).build());
        }
    }
}
