//! Negative log-likelihood of target classes, for rows of classes and for images of them.
//!
//! The input is seen as `[batch, classes, positions]` (one position for rows) and the target as `[batch, positions]`.

use super::reduce::Reduce;
use crate::movement::copy;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::{Fault, Reporter};
use crate::operator::structured;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::launch::linear_id;
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::layout::index_type;
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::interface::{I64, Index};
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};
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
    backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out; Rank::Rows) {
        "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out; Rank::Images) {
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
        "aten::nll_loss2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Rank {
    /// Input `[C]` or `[N, C]`.
    Rows,
    /// Input `[N, C, H, W]`.
    Images,
}

/// Checked arguments, contiguous.
struct Problem {
    input: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    reduction: Reduce,
    ignore: i64,
    classes: i64,
    positions: i64,
}

impl Problem {
    fn new(
        call: &Call,
        rank: Rank,
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore: i64,
    ) -> Result<Problem> {
        let (sizes, targets) = (input.sizes.as_slice(), target.sizes.as_slice());
        let classes = match (rank, sizes) {
            (Rank::Rows, &[classes]) => {
                check!(
                    target.dim() <= 1 && target.numel() == 1,
                    Runtime,
                    "For 1D input, 1D target must have size 1, but got target size: {}",
                    target.numel()
                );
                classes
            }
            (Rank::Rows, &[batch, classes]) => {
                check!(target.dim() <= 1, Runtime, "0D or 1D target tensor expected, multi-target not supported");
                check!(
                    target.dim() == 1 && batch == targets[0],
                    Runtime,
                    "size mismatch (got input: {sizes:?}, target: {targets:?})"
                );
                classes
            }
            (Rank::Images, &[batch, classes, height, width]) => {
                check!(
                    target.dim() == 3,
                    Runtime,
                    "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
                    target.dim()
                );
                check!(
                    targets == [batch, height, width],
                    Runtime,
                    "size mismatch (got input: {sizes:?} , target: {targets:?}"
                );
                classes
            }
            (Rank::Rows, _) => {
                check!(false, Runtime, "input tensor should be 1D or 2D");
                0
            }
            (Rank::Images, _) => {
                check!(
                    false,
                    Runtime,
                    "only batches of spatial inputs supported (4D tensors), but got input of size: {sizes:?}"
                );
                0
            }
        };
        check!(input.dtype.is_float(), NotImplemented, "\"nll_loss_out_frame\" not implemented for '{}'", input.dtype);
        check!(
            matches!(target.dtype, DType::I64 | DType::U8),
            Runtime,
            "expected scalar type Long but found {}",
            target.dtype
        );
        if let Some(w) = weight {
            check!(
                w.dim() == 1 && w.numel() == classes,
                Runtime,
                "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor \
                 of shape: {:?}",
                w.sizes.as_slice()
            );
            check!(w.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, w.dtype);
        }
        Ok(Problem {
            input: copy::as_contiguous(call, input)?,
            target: copy::as_contiguous(call, target)?,
            weight: weight.map(|w| copy::as_contiguous(call, w)).transpose()?,
            reduction: Reduce::of(call, reduction)?,
            ignore,
            classes,
            positions: if rank == Rank::Images { sizes[2] * sizes[3] } else { 1 },
        })
    }

    /// What kernels are specialised by.
    fn spec(&self) -> Spec {
        Spec {
            dtype: self.input.dtype,
            target: self.target.dtype,
            weighted: self.weight.is_some(),
            index: index_type(self.input.numel()),
        }
    }
}

/// What changes the code of every kernel here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    target: DType,
    weighted: bool,
    /// Index type of kernels over the input.
    index: Scalar,
}

impl Spec {
    /// The dtype of weights, if there are any.
    fn weight(&self) -> Option<DType> {
        self.weighted.then_some(self.dtype)
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
    index: Scalar,
}

impl<'b> Terms<'b> {
    /// Loss and weight of the target `t` at position `at`, zeros where it is ignored. A class that does not exist is
    /// reported.
    fn term(&self, t: Value<'b>, at: Value<'b>) -> [Value<'b>; 2] {
        let t = t.cast(Scalar::I64);
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
    index: Scalar,
}

impl Total {
    fn scalar(&self) -> Scalar {
        self.dtype.compute()
    }
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![self.scalar(); 2]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar(), 0.0); 2]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        let Some(fault) = s.fault else { return self.identity(s) };
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

    fn faults(&self) -> Option<&'static str> {
        Some(NAME)
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
    let numel = result.numel();
    if numel > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(result.dtype, &result.sizes)? };
        let arguments = BackwardArguments {
            grad_input: &dense,
            grad: &grad,
            target: &p.target,
            total_weight,
            weight: p.weight.as_ref(),
            ignore: p.ignore,
            classes: p.classes,
            positions: p.positions,
            numel,
        };
        call.run_threads(&BackwardSpec { of: p.spec(), reduction: p.reduction }, &arguments, numel as u64)?;
        if dense.data != result.data {
            copy::device_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}

/// The gradient: every element of it looks whether it is its target's class.
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
        /// Elements of the gradient.
        numel: Index = s.of.index,
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "nll_loss_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { grad_input, grad, target, total_weight, weight, ignore, classes, positions, numel } =
            p;
        let i = linear_id(b, self.of.index);
        b.if_(i.lt(numel), || {
            let row = i / positions;
            let batch = row / classes;
            let class = row - batch * classes;
            let at = batch * positions + (i - row * positions);
            let t = target.load(at).cast(Scalar::I64);
            let hit = t.ne(ignore) & t.eq(class.cast(Scalar::I64));
            let g = match self.reduction {
                Reduce::None => grad.load(at),
                Reduce::Mean => grad.load(0) / total_weight.load(0),
                Reduce::Sum => grad.load(0),
            };
            let g = match weight {
                Some(w) => g * w.load(class),
                None => g,
            };
            grad_input.store(i, hit.select(-g, 0.0));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, target, weighted, index) in
            [(DType::BF16, DType::U8, false, Scalar::U32), (DType::F64, DType::I64, true, Scalar::U64)]
        {
            let spec = Spec { dtype, target, weighted, index };
            accepted(&EachSpec(spec.clone()).build());
            for reduction in [Reduce::None, Reduce::Mean, Reduce::Sum] {
                accepted(&BackwardSpec { of: spec.clone(), reduction }.build());
            }
        }
    }
}
