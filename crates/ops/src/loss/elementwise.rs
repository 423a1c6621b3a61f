//! Losses that compare an input with a target element by element: mse, smooth l1, huber, binary cross-entropy.

use super::Reduce;
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{Out, Rule, operator};
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::promote::accumulator;
use crate::tensor::promote::{Promoted, result_type};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{DType, Scalar, Value, math};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::mse_loss", |c| forward(c, Loss::Mse, Out::New)),
    op("aten::mse_loss.out", |c| forward(c, Loss::Mse, Out::Arg(3))),
    op("aten::mse_loss_backward", |c| backward(c, Loss::Mse, Out::New)),
    op("aten::mse_loss_backward.grad_input", |c| backward(c, Loss::Mse, Out::Arg(4))),
    op("aten::smooth_l1_loss", |c| forward(c, Loss::SmoothL1, Out::New)),
    op("aten::smooth_l1_loss.out", |c| forward(c, Loss::SmoothL1, Out::Arg(4))),
    op("aten::smooth_l1_loss_backward", |c| backward(c, Loss::SmoothL1, Out::New)),
    op("aten::smooth_l1_loss_backward.grad_input", |c| backward(c, Loss::SmoothL1, Out::Arg(5))),
    op("aten::huber_loss", |c| forward(c, Loss::Huber, Out::New)),
    op("aten::huber_loss.out", |c| forward(c, Loss::Huber, Out::Arg(4))),
    op("aten::huber_loss_backward", |c| backward(c, Loss::Huber, Out::New)),
    op("aten::huber_loss_backward.out", |c| backward(c, Loss::Huber, Out::Arg(5))),
    op("aten::binary_cross_entropy", |c| forward(c, Loss::BinaryCrossEntropy, Out::New)),
    op("aten::binary_cross_entropy.out", |c| forward(c, Loss::BinaryCrossEntropy, Out::Arg(4))),
    op("aten::binary_cross_entropy_backward", |c| backward(c, Loss::BinaryCrossEntropy, Out::New)),
    op("aten::binary_cross_entropy_backward.grad_input", |c| backward(c, Loss::BinaryCrossEntropy, Out::Arg(5))),
];

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Loss {
    Mse,
    SmoothL1,
    Huber,
    BinaryCrossEntropy,
}

impl Loss {
    /// Names of the kernels: all losses, their mean or sum, gradients.
    fn names(self) -> [&'static str; 3] {
        match self {
            Loss::Mse => ["mse_loss", "mse_loss_reduced", "mse_loss_backward"],
            Loss::SmoothL1 => ["smooth_l1_loss", "smooth_l1_loss_reduced", "smooth_l1_loss_backward"],
            Loss::Huber => ["huber_loss", "huber_loss_reduced", "huber_loss_backward"],
            Loss::BinaryCrossEntropy => {
                ["binary_cross_entropy", "binary_cross_entropy_reduced", "binary_cross_entropy_backward"]
            }
        }
    }

    /// Whether it has a number: beta or delta, where the square becomes a line.
    fn has_knee(self) -> bool {
        matches!(self, Loss::SmoothL1 | Loss::Huber)
    }

    /// The knee at argument `i`, checked.
    fn knee(self, call: &Call, i: usize) -> Result<Option<Number>> {
        if !self.has_knee() {
            return Ok(None);
        }
        let knee = call.scalar(i)?;
        let (positive, negative) = (knee.to_f64() > 0.0, knee.to_f64() < 0.0);
        if self == Loss::SmoothL1 {
            check!(!negative, Runtime, "smooth_l1_loss does not support negative values for beta.");
        } else {
            check!(positive, Runtime, "huber_loss does not support non-positive values for delta.");
        }
        Ok(Some(knee))
    }

    /// Loss of input `x` against target `y`.
    fn value<'b>(self, x: Value<'b>, y: Value<'b>, knee: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let size = d.abs();
        let half = 0.5 * size;
        match (self, knee) {
            (Loss::SmoothL1, Some(beta)) => size.lt(beta).select(half * size / beta, size - 0.5 * beta),
            (Loss::Huber, Some(delta)) => size.le(delta).select(half * size, delta * (size - 0.5 * delta)),
            (Loss::BinaryCrossEntropy, _) => {
                // Logarithms stop at -100, as in PyTorch: the loss stays finite.
                let bounded = |log: Value<'b>| log.lt(-100.0).select(log.like(-100.0), log);
                (y - 1.0) * bounded(math::log1p(-x)) - y * bounded(math::log(x))
            }
            _ => d * d,
        }
    }

    /// Derivative of the loss by `x`.
    fn slope<'b>(self, x: Value<'b>, y: Value<'b>, knee: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let line = |knee: Value<'b>, size: Value<'b>, inner: Value<'b>| {
            d.le(-knee).select(-size, d.ge(knee).select(size, inner))
        };
        match (self, knee) {
            (Loss::SmoothL1, Some(beta)) => line(beta, d.like(1.0), d / beta),
            (Loss::Huber, Some(delta)) => line(delta, delta, d),
            (Loss::BinaryCrossEntropy, _) => {
                let spread: Value<'b> = (1.0 - x) * x;
                d / spread.max(1e-12)
            }
            _ => 2.0 * d,
        }
    }
}

/// Sums losses; divides by the count for a mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    loss: Loss,
    scalar: Scalar,
    mean: bool,
    weighted: bool,
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        self.loss.names()[1]
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [x, y] = [elements[0].cast(self.scalar), elements[1].cast(self.scalar)];
        let value = self.loss.value(x, y, s.numbers.get(1).copied());
        smallvec![if self.weighted { value * elements[2].cast(self.scalar) } else { value }]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / s.numbers[0] } else { x[0] }]
    }
}

/// Argument positions of input, target and, if there is one, weight.
fn operands(call: &Call, loss: Loss, first: usize) -> Result<SmallVec<[usize; 3]>> {
    let mut at: SmallVec<[usize; 3]> = smallvec![first, first + 1];
    if loss == Loss::BinaryCrossEntropy && call.opt_tensor(first + 2)?.is_some() {
        at.push(first + 2);
    }
    let name = loss.names()[0];
    let (x, y) = (call.tensor(first)?, call.tensor(first + 1)?);
    if loss == Loss::BinaryCrossEntropy {
        for t in [x, y] {
            check!(t.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", t.dtype);
        }
        check!(x.dtype == y.dtype, Runtime, "Found dtype {} but expected {}", y.dtype, x.dtype);
        return Ok(at);
    }
    // The others promote: a target of integers or bools meets an input of floats.
    let common = crate::pointwise::elementwise::common_dtype(call, &[first, first + 1])?;
    check!(
        loss != Loss::Huber || common.can_cast_to(x.dtype),
        Runtime,
        "result type {common} can't be cast to the desired output type {}",
        x.dtype
    );
    let cpu_name = name.strip_suffix("_loss").unwrap_or(name);
    check!(common.is_float(), NotImplemented, "\"{cpu_name}_cpu\" not implemented for '{common}'");
    Ok(at)
}

/// Position of the reduction argument, when the input is argument `first`.
fn reduction_at(loss: Loss, first: usize) -> usize {
    first + if loss == Loss::BinaryCrossEntropy { 3 } else { 2 }
}

/// `loss(self, target[, weight], reduction[, knee][, out])`
fn forward(call: &mut Call, loss: Loss, out: Out) -> Result<()> {
    let at = operands(call, loss, 0)?;
    let reduction_at = reduction_at(loss, 0);
    let reduction = Reduce::argument(call, reduction_at)?;
    let knee = loss.knee(call, reduction_at + 1)?;
    let weighted = at.len() == 3;
    if reduction == Reduce::None {
        return operator(call, out, Rule::Promote, loss.names()[0], &at, knee.as_slice(), |_, v| {
            let knee = loss.has_knee().then(|| v[v.len() - 1]);
            let value = loss.value(v[0], v[1], knee);
            if weighted { value * v[2] } else { value }
        });
    }
    let mut tensors: SmallVec<[&Tensor; 3]> = SmallVec::new();
    let mut sizes = Dims::new();
    for &i in &at {
        let t = call.tensor(i)?;
        sizes = call.broadcast(&sizes, &t.sizes)?;
        tensors.push(t);
    }
    let promoted: SmallVec<[Promoted; 3]> = tensors.iter().map(|t| Promoted::Tensor(t)).collect();
    let dtype = result_type(&promoted, call.host.default_dtype());
    let expanded: SmallVec<[Tensor; 3]> = tensors.iter().map(|t| t.expand(&sizes)).collect();
    let inputs: SmallVec<[&Tensor; 3]> = expanded.iter().collect();
    let accumulator = accumulator(dtype);
    let mut numbers: SmallVec<[(DType, Number); 2]> = smallvec![(accumulator, Number::Int(sizes.iter().product()))];
    numbers.extend(knee.map(|k| (accumulator, k)));
    let result = match out {
        Out::Arg(i) => call.out(Some(i), dtype, &[])?,
        _ => call.empty(dtype, &[])?,
    };
    let fold = Total { loss, scalar: accumulator.compute(), mean: reduction == Reduce::Mean, weighted };
    let axes = Axes::all(false);
    reduce(call, &fold, &Reduction { inputs: &inputs, outs: &[&result], axes, tables: &[], numbers: &numbers })?;
    call.ret(result);
    Ok(())
}

/// `loss_backward(grad_output, self, target[, weight], reduction[, knee][, grad_input])`
fn backward(call: &mut Call, loss: Loss, out: Out) -> Result<()> {
    let inputs = operands(call, loss, 1)?;
    let reduction_at = reduction_at(loss, 1);
    let reduction = Reduce::argument(call, reduction_at)?;
    let mut at: SmallVec<[usize; 4]> = smallvec![0];
    at.extend(inputs.iter().copied());
    let mut sizes = Dims::new();
    for &i in &inputs {
        sizes = call.broadcast(&sizes, &call.tensor(i)?.sizes)?;
    }
    let share = if reduction == Reduce::Mean { 1.0 / sizes.iter().product::<i64>() as f64 } else { 1.0 };
    let mut numbers: SmallVec<[Number; 2]> = smallvec![Number::Double(share)];
    numbers.extend(loss.knee(call, reduction_at + 1)?);
    let tensors = at.len();
    operator(call, out, Rule::Promote, loss.names()[2], &at, &numbers, |_, v| {
        let slope = loss.slope(v[1], v[2], loss.has_knee().then(|| v[v.len() - 1]));
        let gradient = v[0] * (v[tensors] * slope);
        if tensors == 4 { gradient * v[3] } else { gradient }
    })
}
