//! Negative log-likelihood of target classes, for rows of classes and for images of them.
//!
//! The input is seen as `[batch, classes, positions]` (one position for rows) and the target as `[batch, positions]`.

use super::Reduce;
use crate::check;
use crate::movement::copy;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::{self, Fault, Reporter};
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::{Dims, Tensor};
use dml_engine::Parameter;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::nll_loss_forward", |c| forward(c, Rank::Rows, [None, None])),
    op("aten::nll_loss_forward.output", |c| forward(c, Rank::Rows, [Some(5), Some(6)])),
    op("aten::nll_loss_backward", |c| backward(c, Rank::Rows, None)),
    op("aten::nll_loss_backward.grad_input", |c| backward(c, Rank::Rows, Some(7))),
    op("aten::nll_loss2d_forward", |c| forward(c, Rank::Images, [None, None])),
    op("aten::nll_loss2d_forward.output", |c| forward(c, Rank::Images, [Some(5), Some(6)])),
    op("aten::nll_loss2d_backward", |c| backward(c, Rank::Images, None)),
    op("aten::nll_loss2d_backward.grad_input", |c| backward(c, Rank::Images, Some(7))),
];

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
    /// `(self, target, weight, reduction, ignore_index)` from argument `first`.
    fn new(call: &Call, rank: Rank, first: usize) -> Result<Problem> {
        let (input, target) = (call.tensor(first)?, call.tensor(first + 1)?);
        let weight = call.opt_tensor(first + 2)?;
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
        let weight = match weight {
            Some(w) => Some(copy::as_contiguous(call, w)?),
            None => None,
        };
        Ok(Problem {
            input: copy::as_contiguous(call, input)?,
            target: copy::as_contiguous(call, target)?,
            weight,
            reduction: Reduce::argument(call, first + 3)?,
            ignore: call.int(first + 4)?,
            classes,
            positions: if rank == Rank::Images { sizes[2] * sizes[3] } else { 1 },
        })
    }

    fn wide(&self) -> bool {
        self.index() == Scalar::U64
    }

    fn key(&self) -> [u32; 6] {
        let flags = u32::from(self.weight.is_some()) | u32::from(self.wide()) << 1 | (self.reduction as u32) << 2;
        [self.input.dtype as u32, self.target.dtype as u32, flags, 0, 0, 0]
    }

    /// Index type of kernels over the input.
    fn index(&self) -> Scalar {
        crate::tensor::layout::index_type(self.input.numel())
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
    /// Loss and weight of the target `t` at index `at`, zeros where it is ignored. A class that does not exist is
    /// reported.
    fn term(&self, t: Value<'b>, at: Value<'b>) -> [Value<'b>; 2] {
        let t = t.cast(Scalar::I64);
        let counts = t.ne(self.ignore);
        let exists = t.ge(0) & t.lt(self.classes);
        self.b.if_(counts & !exists, || self.fault.report(t, self.classes, 1));
        let counts = counts & exists;
        let class = counts.select(t, 0);
        let (classes, positions) = (self.classes.cast(self.index), self.positions.cast(self.index));
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

/// What errors call the operator.
const NAME: &str = "nll_loss";

/// Sums losses and weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    dtype: DType,
    mean: bool,
    weighted: bool,
}

impl Total {
    fn scalar(&self) -> Scalar {
        self.dtype.compute()
    }
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        "nll_loss"
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
            index: s.index,
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

/// `nll_loss_forward(self, target, weight, reduction, ignore_index[, output, total_weight])`
fn forward(call: &mut Call, rank: Rank, outs: [Option<usize>; 2]) -> Result<()> {
    let p = Problem::new(call, rank, 0)?;
    let sizes = if p.reduction == Reduce::None { p.target.sizes.clone() } else { Dims::new() };
    let output = call.out(outs[0], p.input.dtype, &sizes)?;
    let total = call.out(outs[1], p.input.dtype, &[])?;
    if p.reduction == Reduce::None {
        each(call, &p, &output)?;
        copy::fill_with(call, &total, Number::Int(0))?;
    } else {
        let fold = Total { dtype: p.input.dtype, mean: p.reduction == Reduce::Mean, weighted: p.weight.is_some() };
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
fn each(call: &Call, p: &Problem, output: &Tensor) -> Result<()> {
    let n = p.target.numel();
    if n == 0 {
        return Ok(());
    }
    let dense = if output.is_contiguous() { output.clone() } else { call.empty(output.dtype, &output.sizes)? };
    let kernel = call.kernel("nll_loss_each", p.key(), || {
        let b = Builder::new("nll_loss_each", [GROUP, 1, 1]);
        write_each(&b, p);
        b.finish()
    })?;
    let mut launcher = call.launch(kernel).write(&dense).read(&p.target).read(&p.input);
    if let Some(w) = &p.weight {
        launcher = launcher.read(w);
    }
    let launcher = launcher.fault().u32(fault::operator(NAME)).i64(p.ignore).i64(p.classes).i64(p.positions);
    launcher.index(p.index(), n).threads(n as u64)?;
    if dense.data != output.data {
        copy::device_copy(call, &dense, output)?;
    }
    Ok(())
}

fn write_each(b: &Builder, p: &Problem) {
    let output = b.pointer("output", p.input.dtype);
    let target = b.pointer("target", p.target.dtype);
    let input = b.pointer("input", p.input.dtype);
    let weight = p.weight.as_ref().map(|w| b.pointer("weight", w.dtype));
    let fault = Fault::declare(b, "fault", &());
    let [ignore, classes, positions] = ["ignore", "classes", "positions"].map(|name| b.param(name, Scalar::I64));
    let n = b.param("n", p.index());
    let terms = Terms { b, input, weight, fault, ignore, classes, positions, index: p.index() };
    let i = linear_id(b, p.index());
    b.if_(i.lt(n), || output.store(i, terms.term(target.load(i), i)[0]));
}

/// `nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight[, grad_input])`
fn backward(call: &mut Call, rank: Rank, out: Option<usize>) -> Result<()> {
    let p = Problem::new(call, rank, 1)?;
    let (grad, total) = (call.tensor(0)?, call.tensor(6)?);
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
    let result = call.out(out, p.input.dtype, &p.input.sizes)?;
    let n = result.numel();
    if n > 0 {
        let dense = if result.is_contiguous() { result.clone() } else { call.empty(result.dtype, &result.sizes)? };
        let kernel = call.kernel("nll_loss_backward", p.key(), || build_backward(&p))?;
        let mut launcher = call.launch(kernel).write(&dense).read(&grad).read(&p.target).read(total);
        if let Some(w) = &p.weight {
            launcher = launcher.read(w);
        }
        let index = p.index();
        let launcher = launcher.i64(p.ignore).index(index, p.classes).index(index, p.positions);
        launcher.index(index, n).threads(n as u64)?;
        if dense.data != result.data {
            copy::device_copy(call, &dense, &result)?;
        }
    }
    call.ret(result);
    Ok(())
}

/// Every element of the gradient looks whether it is its target's class.
fn build_backward(p: &Problem) -> Kernel {
    let b = Builder::new("nll_loss_backward", [GROUP, 1, 1]);
    let index = p.index();
    let dtype = p.input.dtype;
    let result = b.pointer("grad_input", dtype);
    let grad = b.pointer("grad_output", dtype);
    let target = b.pointer("target", p.target.dtype);
    let total = b.pointer("total_weight", dtype);
    let weight = p.weight.as_ref().map(|w| b.pointer("weight", w.dtype));
    let ignore = b.param("ignore", Scalar::I64);
    let [classes, positions, n] = ["classes", "positions", "n"].map(|name| b.param(name, index));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let row = i / positions;
        let batch = row / classes;
        let class = row - batch * classes;
        let at = batch * positions + (i - row * positions);
        let t = target.load(at).cast(Scalar::I64);
        let hit = t.ne(ignore) & t.eq(class.cast(Scalar::I64));
        let g = match p.reduction {
            Reduce::None => grad.load(at),
            Reduce::Mean => grad.load(0) / total.load(0),
            Reduce::Sum => grad.load(0),
        };
        let g = match weight {
            Some(w) => g * w.load(class),
            None => g,
        };
        result.store(i, hit.select(-g, 0.0));
    });
    b.finish()
}
