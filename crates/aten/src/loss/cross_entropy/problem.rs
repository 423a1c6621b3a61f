//! The arguments of a cross-entropy: which of them the fused kernels support, and their conversion.

use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::loss::cross_entropy::problem::{Problem, Unknown, classes_are_contiguous, without};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::rows::Extent;
use dml_compute::view::View;
use dml_kernel::DType;

/// The arguments of a cross-entropy as given.
#[derive(Copy, Clone)]
pub struct Given<'a> {
    /// Logits.
    pub input: &'a View,
    /// The class of each row of logits.
    pub target: &'a View,
    /// The weight of each class.
    pub weight: Option<&'a View>,
    /// PyTorch's code of the reduction.
    pub reduction: i64,
    /// The class whose rows are ignored.
    pub ignore: i64,
    /// The fraction of each target's weight that is spread over all classes.
    pub smoothing: f64,
    /// Whether losses of 16-bit logits are float32.
    pub widen: bool,
}

impl Given<'_> {
    /// The dimension of classes.
    fn dim(&self) -> usize {
        usize::from(self.input.dim() > 1)
    }

    /// Whether the fused kernels support them. They do not support probabilities in place of
    /// classes, smoothing with weights, means of nothing, and invalid arguments.
    pub fn is_fused(&self) -> bool {
        let Given { input, target, smoothing, widen, .. } = *self;
        if input.dim() == 0 || input.numel() == 0 || !input.dtype.is_float() {
            return false;
        }
        let weighs = |w: &View| {
            let same = w.dtype == input.dtype;
            w.sizes[..] == [input.sizes[self.dim()]]
                && smoothing == 0.0
                && (same || widen && w.dtype.is_float() && w.dtype != DType::F64)
        };
        matches!(target.dtype, DType::I64 | DType::U8)
            && target.sizes == without(&input.sizes, self.dim())
            && (0..=2).contains(&self.reduction)
            && (0.0..=1.0).contains(&smoothing)
            && self.weight.is_none_or(weighs)
    }
}

/// Converts arguments that [are fused](Given::is_fused).
pub fn prepared(call: &Call, given: Given) -> Result<Problem> {
    let dim = given.dim();
    let Given { input, target, weight, reduction, ignore, smoothing, .. } = given;
    let classes = input.sizes[dim];
    // Channels-last images are rows already.
    let last = classes_are_contiguous(input, dim);
    let input = if last { input.clone() } else { as_contiguous(call, input)? };
    let extent = if last {
        Extent { rows: input.numel() / classes, n: classes, inner: 1 }
    } else {
        Extent::along(&input.sizes, dim)
    };
    Ok(Problem {
        input,
        extent,
        target: as_contiguous(call, target)?,
        weight: weight.map(|w| as_contiguous(call, w)).transpose()?,
        reduction: crate::loss::reduce::reduce_of(call, reduction)?,
        ignore,
        unknown: Unknown::IsReported,
        name: "cross_entropy_loss",
        smoothing,
    })
}
