//! Losses that compare an input with a target element by element: mse, smooth l1, huber, binary
//! cross-entropy.

use crate::fault::Refusal;
use crate::functions;
use crate::pointwise::function::{Domain, Function, Guard};
use dml_kernel::{Value, math};

/// The input and the target of binary cross-entropy.
const PROBABILITIES: &[Guard] = &[
    Guard {
        operand: 0,
        domain: Domain::Probability,
        refusal: Refusal::Value("all elements of input should be between 0 and 1"),
    },
    Guard {
        operand: 1,
        domain: Domain::Probability,
        refusal: Refusal::Value("all elements of target should be between 0 and 1"),
    },
];

/// A loss of an element.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The square of the difference.
    Mse,
    /// A square below the knee, a line above.
    SmoothL1,
    /// As [`SmoothL1`](Self::SmoothL1), times the knee.
    Huber,
    /// Of probabilities.
    BinaryCrossEntropy,
}

impl Loss {
    /// The losses of all elements. Flag 0: they are weighted.
    pub fn function(self) -> &'static Function {
        match self {
            Loss::Mse => &MSE_LOSS,
            Loss::SmoothL1 => &SMOOTH_L1_LOSS,
            Loss::Huber => &HUBER_LOSS,
            Loss::BinaryCrossEntropy => &BINARY_CROSS_ENTROPY,
        }
    }

    /// The gradients of all elements. Flag 0: they are weighted.
    pub fn gradient(self) -> &'static Function {
        match self {
            Loss::Mse => &MSE_LOSS_BACKWARD,
            Loss::SmoothL1 => &SMOOTH_L1_LOSS_BACKWARD,
            Loss::Huber => &HUBER_LOSS_BACKWARD,
            Loss::BinaryCrossEntropy => &BINARY_CROSS_ENTROPY_BACKWARD,
        }
    }

    /// The name of the kernel of their mean or sum.
    pub fn reduced_name(self) -> &'static str {
        match self {
            Loss::Mse => "mse_loss_reduced",
            Loss::SmoothL1 => "smooth_l1_loss_reduced",
            Loss::Huber => "huber_loss_reduced",
            Loss::BinaryCrossEntropy => "binary_cross_entropy_reduced",
        }
    }

    /// Whether it has a number: beta or delta, where the square becomes a line.
    fn has_knee(self) -> bool {
        matches!(self, Loss::SmoothL1 | Loss::Huber)
    }

    /// The factor of all gradients, beside what a mean divides by.
    pub fn slope_factor(self) -> f64 {
        if self == Loss::Mse { 2.0 } else { 1.0 }
    }

    /// The knee, which is the last operand.
    fn knee<'b>(self, v: &[Value<'b>]) -> Option<Value<'b>> {
        self.has_knee().then(|| v[v.len() - 1])
    }

    fn of_elements<'b>(self, v: &[Value<'b>], weighted: bool) -> Value<'b> {
        let value = self.value(v[0], v[1], self.knee(v));
        if weighted { value * v[2] } else { value }
    }

    fn slope_of_elements<'b>(self, v: &[Value<'b>], weighted: bool) -> Value<'b> {
        let gradient = self.slope([v[0], v[1], v[2], v[3 + usize::from(weighted)]], self.knee(v));
        if weighted { gradient * v[3] } else { gradient }
    }

    /// Loss of input `x` against target `y`.
    pub fn value<'b>(self, x: Value<'b>, y: Value<'b>, knee: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let size = d.abs();
        let half = 0.5 * size;
        match (self, knee) {
            (Loss::SmoothL1, Some(beta)) => size.lt(beta).select(math::mul(half, size) / beta, size - 0.5 * beta),
            (Loss::Huber, Some(delta)) => size.le(delta).select(half * size, delta * (size - 0.5 * delta)),
            (Loss::BinaryCrossEntropy, _) => {
                // Logarithms stop at -100, as in PyTorch: the loss stays finite.
                let bounded = |log: Value<'b>| log.lt(-100.0).select(log.like(-100.0), log);
                (y - 1.0) * bounded(math::log1p(-x)) - y * bounded(math::log(x))
            }
            _ => d * d,
        }
    }

    /// Derivative of the loss by `x`, times the factor of all elements and the gradient of the
    /// loss.
    ///
    /// In the CPU's order: what overflows or vanishes between is what does there.
    fn slope<'b>(self, [x, y, grad, factor]: [Value<'b>; 4], knee: Option<Value<'b>>) -> Value<'b> {
        let d = x - y;
        let line = |knee: Value<'b>, size: Value<'b>, inner: Value<'b>| {
            d.le(-knee).select(-size, d.ge(knee).select(size, inner))
        };
        match (self, knee) {
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

functions! {
    /// Squares of differences, of input, target, weight (flag 0) and knee.
    MSE_LOSS = "mse_loss"(..v | o) => {
        Loss::Mse.of_elements(v, o.flags[0])
    };
    /// The gradient of [`MSE_LOSS`], of input, target, gradient, weight (flag 0), a factor and
    /// knee.
    MSE_LOSS_BACKWARD = "mse_loss_backward"(..v | o) => {
        Loss::Mse.slope_of_elements(v, o.flags[0])
    };
    /// Squares of small differences by `beta`, else their magnitude, of input, target, weight (flag
    /// 0) and knee.
    SMOOTH_L1_LOSS = "smooth_l1_loss"(..v | o) => {
        Loss::SmoothL1.of_elements(v, o.flags[0])
    };
    /// The gradient of [`SMOOTH_L1_LOSS`], of input, target, gradient, weight (flag 0), a factor
    /// and knee.
    SMOOTH_L1_LOSS_BACKWARD = "smooth_l1_loss_backward"(..v | o) => {
        Loss::SmoothL1.slope_of_elements(v, o.flags[0])
    };
    /// Squares of small differences, else their magnitude times `delta`, of input, target, weight
    /// (flag 0) and knee.
    HUBER_LOSS = "huber_loss"(..v | o) => {
        Loss::Huber.of_elements(v, o.flags[0])
    };
    /// The gradient of [`HUBER_LOSS`], of input, target, gradient, weight (flag 0), a factor and
    /// knee.
    HUBER_LOSS_BACKWARD = "huber_loss_backward"(..v | o) => {
        Loss::Huber.slope_of_elements(v, o.flags[0])
    };
    /// Minus the logarithm of the probability, of input, target, weight (flag 0) and knee.
    BINARY_CROSS_ENTROPY = "binary_cross_entropy"(..v | o).guarded(PROBABILITIES) => {
        Loss::BinaryCrossEntropy.of_elements(v, o.flags[0])
    };
    /// The gradient of [`BINARY_CROSS_ENTROPY`], of input, target, gradient, weight (flag 0), a
    /// factor and knee.
    BINARY_CROSS_ENTROPY_BACKWARD = "binary_cross_entropy_backward"(..v | o) => {
        Loss::BinaryCrossEntropy.slope_of_elements(v, o.flags[0])
    };
}
