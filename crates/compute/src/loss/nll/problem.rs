//! The arguments of a negative log-likelihood, and the common specialisation of its kernels.

use crate::loss::reduce::Reduce;
use crate::view::View;
use crate::view::layout::index_type;
use dml_kernel::{DType, ScalarType};

/// The shape of the input.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Rank {
    /// Input `[C]` or `[N, C]`.
    Rows,
    /// Input `[N, C, H, W]`.
    Images,
}

/// The arguments. Tensors are contiguous.
pub struct Problem {
    /// Log-probabilities, `[batch, classes, positions]`.
    pub input: View,
    /// The class of each position, `[batch, positions]`, int64 or uint8.
    pub target: View,
    /// A weight for each class, in the input's dtype.
    pub weight: Option<View>,
    /// The reduction of the losses.
    pub reduction: Reduce,
    /// The class whose targets are ignored.
    pub ignore: i64,
    /// Number of classes.
    pub classes: i64,
    /// Number of positions of an element of the batch.
    pub positions: i64,
}

impl Problem {
    /// The kernels' specialisation.
    pub(super) fn spec(&self) -> Spec {
        Spec {
            dtype: self.input.dtype,
            target: self.target.dtype,
            weighted: self.weight.is_some(),
            index: index_type(self.input.numel()),
        }
    }
}

/// Specialisation common to these kernels: everything that changes their code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    pub(super) dtype: DType,
    pub(super) target: DType,
    pub(super) weighted: bool,
    /// Integer type of indices in the input.
    pub(super) index: ScalarType,
}

impl Spec {
    /// The dtype of weights, if there are any.
    pub(super) fn weight(&self) -> Option<DType> {
        self.weighted.then_some(self.dtype)
    }
}
