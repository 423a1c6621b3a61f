//! The checked arguments of a negative log-likelihood.

use crate::loss::reduce::Reduce;
use crate::view::View;
use crate::view::layout::index_type;
use dml_kernel::{DType, ScalarType};

/// What the classes are of.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Rank {
    /// Input `[C]` or `[N, C]`.
    Rows,
    /// Input `[N, C, H, W]`.
    Images,
}

/// Checked arguments, contiguous.
pub struct Problem {
    pub input: View,
    pub target: View,
    pub weight: Option<View>,
    pub reduction: Reduce,
    pub ignore: i64,
    pub classes: i64,
    pub positions: i64,
}

impl Problem {
    /// What kernels are specialised by.
    pub fn spec(&self) -> Spec {
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
pub struct Spec {
    pub dtype: DType,
    pub target: DType,
    pub weighted: bool,
    /// Index type of kernels over the input.
    pub index: ScalarType,
}

impl Spec {
    /// The dtype of weights, if there are any.
    pub fn weight(&self) -> Option<DType> {
        self.weighted.then_some(self.dtype)
    }
}
