//! Losses that compare an input with a target element by element: mse, smooth l1, huber, binary
//! cross-entropy.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::{Refusal, refused};
use crate::functions;
use crate::pointwise::function::{Domain, Function, Guard};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Refusals, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Operands of binary cross-entropy that must be probabilities: input and target.
const PROBABILITIES: &[Guard] = &[
    Guard { operand: 0, domain: Domain::Probability, refusal: Refusal::Value(refused::INPUT) },
    Guard { operand: 1, domain: Domain::Probability, refusal: Refusal::Value(refused::TARGET) },
];

/// A loss of an input and a target.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The squared difference.
    Mse,
    /// Half the squared difference divided by beta below beta, and the absolute difference minus
    /// half of beta from beta on.
    SmoothL1,
    /// Half the squared difference below delta, and delta times the absolute difference minus half
    /// of delta from delta on.
    Huber,
    /// Cross-entropy of two probabilities.
    BinaryCrossEntropy,
}

impl Loss {
    /// The losses of all elements. Flag 0: weighted.
    pub fn function(self) -> &'static Function {
        match self {
            Loss::Mse => &MSE_LOSS,
            Loss::SmoothL1 => &SMOOTH_L1_LOSS,
            Loss::Huber => &HUBER_LOSS,
            Loss::BinaryCrossEntropy => &BINARY_CROSS_ENTROPY,
        }
    }

    /// The gradients of all elements. Flag 0: weighted.
    pub fn gradient(self) -> &'static Function {
        match self {
            Loss::Mse => &MSE_LOSS_BACKWARD,
            Loss::SmoothL1 => &SMOOTH_L1_LOSS_BACKWARD,
            Loss::Huber => &HUBER_LOSS_BACKWARD,
            Loss::BinaryCrossEntropy => &BINARY_CROSS_ENTROPY_BACKWARD,
        }
    }

    /// The kernel name of the mean or sum.
    fn reduced_name(self) -> &'static str {
        match self {
            Loss::Mse => "mse_loss_reduced",
            Loss::SmoothL1 => "smooth_l1_loss_reduced",
            Loss::Huber => "huber_loss_reduced",
            Loss::BinaryCrossEntropy => "binary_cross_entropy_reduced",
        }
    }

    /// Whether it has a threshold, beta or delta, at which it changes from quadratic to linear.
    fn has_threshold(self) -> bool {
        matches!(self, Loss::SmoothL1 | Loss::Huber)
    }

    /// The constant factor of all gradients, apart from a mean's divisor.
    pub fn slope_factor(self) -> f64 {
        if self == Loss::Mse { 2.0 } else { 1.0 }
    }

    /// The threshold (beta or delta), which is the last operand.
    fn threshold<'b>(self, v: &[Value<'b>]) -> Option<Value<'b>> {
        self.has_threshold().then(|| v[v.len() - 1])
    }

    fn of_elements<'b>(self, v: &[Value<'b>], weighted: bool) -> Value<'b> {
        let value = self.value(v[0], v[1], self.threshold(v));
        if weighted { value * v[2] } else { value }
    }

    fn slope_of_elements<'b>(self, v: &[Value<'b>], weighted: bool) -> Value<'b> {
        let gradient = self.slope([v[0], v[1], v[2], v[3 + usize::from(weighted)]], self.threshold(v));
        if weighted { gradient * v[3] } else { gradient }
    }

    /// Loss of input `x` and target `y`.
    fn value<'b>(self, x: Value<'b>, y: Value<'b>, threshold: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let size = d.abs();
        let half = 0.5 * size;
        match (self, threshold) {
            (Loss::SmoothL1, Some(beta)) => size.lt(beta).select(math::mul(half, size) / beta, size - 0.5 * beta),
            (Loss::Huber, Some(delta)) => size.le(delta).select(half * size, delta * (size - 0.5 * delta)),
            (Loss::BinaryCrossEntropy, _) => {
                // Logarithms are clamped at -100, so that the loss stays finite.
                let bounded = |log: Value<'b>| log.lt(-100.0).select(log.like(-100.0), log);
                (y - 1.0) * bounded(math::log1p(-x)) - y * bounded(math::log(x))
            }
            _ => d * d,
        }
    }

    /// Derivative of the loss with respect to `x`, times the common factor and the gradient of the
    /// loss.
    ///
    /// The order of operations matters: it determines which intermediate results overflow or
    /// vanish.
    fn slope<'b>(self, [x, y, grad, factor]: [Value<'b>; 4], threshold: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let line = |threshold: Value<'b>, size: Value<'b>, inner: Value<'b>| {
            d.le(-threshold).select(-size, d.ge(threshold).select(size, inner))
        };
        match (self, threshold) {
            (Loss::SmoothL1, Some(beta)) => factor * line(beta, d.like(1.0), d / beta) * grad,
            (Loss::Huber, Some(delta)) => factor * line(delta, delta, d) * grad,
            (Loss::BinaryCrossEntropy, _) => {
                let spread: Value<'b> = (1.0 - x) * x;
                math::mul(grad, d) / spread.max(f64::from(1e-12_f32)) * factor
            }
            _ => factor * d * grad,
        }
    }
}

/// Writes the sum of the losses, or their mean, to `out`, which has no dimensions. `inputs` are the
/// input, the target and optionally a weight, expanded to one shape. `dtype` is their common dtype:
/// the loss is computed in its accumulator. `threshold` is the difference at which the loss changes
/// from quadratic to linear: beta of [`Loss::SmoothL1`], delta of [`Loss::Huber`].
pub fn reduced(
    cx: &Context,
    loss: Loss,
    inputs: &[&View],
    dtype: DType,
    mean: bool,
    threshold: Option<Number>,
    out: &View,
) -> Result<()> {
    let accumulator = accumulator(dtype);
    let mut numbers: SmallVec<[(DType, Number); 2]> = smallvec![(accumulator, Number::Int(inputs[0].numel()))];
    numbers.extend(threshold.map(|k| (accumulator, k)));
    let fold = Total { loss, scalar: accumulator.compute(), mean, weighted: inputs.len() == 3 };
    reduce(cx, &fold, &Reduction { inputs, outs: &[out], axes: Axes::all(false), tables: &[], numbers: &numbers })
}

/// Sums losses; divides by the count for a mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Total {
    loss: Loss,
    scalar: ScalarType,
    mean: bool,
    weighted: bool,
}

impl Fold for Total {
    fn name(&self) -> &'static str {
        self.loss.reduced_name()
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [x, y] = [elements[0].cast(self.scalar), elements[1].cast(self.scalar)];
        for (guard, fault) in self.loss.function().guards.iter().zip(&s.faults) {
            s.b.if_(guard.domain.lacks([x, y][guard.operand]), || fault.report_value());
        }
        let value = self.loss.value(x, y, s.numbers.get(1).copied());
        smallvec![if self.weighted { value * elements[2].cast(self.scalar) } else { value }]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.mean { x[0] / s.numbers[0] } else { x[0] }]
    }

    fn refusals(&self) -> Refusals {
        self.loss.function().guards.iter().map(|guard| guard.refusal).collect()
    }
}

functions! {
    /// Squares of differences. Operands: input, target, weight (flag 0).
    MSE_LOSS = "mse_loss"(..v | o) => {
        Loss::Mse.of_elements(v, o.flags[0])
    };
    /// The gradient of [`MSE_LOSS`]. Operands: input, target, gradient, weight (flag 0), a factor.
    MSE_LOSS_BACKWARD = "mse_loss_backward"(..v | o) => {
        Loss::Mse.slope_of_elements(v, o.flags[0])
    };
    /// Squares of small differences divided by `beta`, else their magnitude. Operands: input,
    /// target, weight (flag 0), `beta`.
    SMOOTH_L1_LOSS = "smooth_l1_loss"(..v | o) => {
        Loss::SmoothL1.of_elements(v, o.flags[0])
    };
    /// The gradient of [`SMOOTH_L1_LOSS`]. Operands: input, target, gradient, weight (flag 0), a
    /// factor, `beta`.
    SMOOTH_L1_LOSS_BACKWARD = "smooth_l1_loss_backward"(..v | o) => {
        Loss::SmoothL1.slope_of_elements(v, o.flags[0])
    };
    /// Squares of small differences, else their magnitude times `delta`. Operands: input, target,
    /// weight (flag 0), `delta`.
    HUBER_LOSS = "huber_loss"(..v | o) => {
        Loss::Huber.of_elements(v, o.flags[0])
    };
    /// The gradient of [`HUBER_LOSS`]. Operands: input, target, gradient, weight (flag 0), a
    /// factor, `delta`.
    HUBER_LOSS_BACKWARD = "huber_loss_backward"(..v | o) => {
        Loss::Huber.slope_of_elements(v, o.flags[0])
    };
    /// Minus the logarithm of the probability. Operands: input, target, weight (flag 0).
    BINARY_CROSS_ENTROPY = "binary_cross_entropy"(..v | o).guarded(PROBABILITIES) => {
        Loss::BinaryCrossEntropy.of_elements(v, o.flags[0])
    };
    /// The gradient of [`BINARY_CROSS_ENTROPY`]. Operands: input, target, gradient, weight (flag
    /// 0), a factor.
    BINARY_CROSS_ENTROPY_BACKWARD = "binary_cross_entropy_backward"(..v | o) => {
        Loss::BinaryCrossEntropy.slope_of_elements(v, o.flags[0])
    };
}
