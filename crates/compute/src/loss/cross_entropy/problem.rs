//! The checked arguments of a cross-entropy.

use crate::dtype::accumulator;
use crate::loss::reduce::Reduce;
use crate::primitives::rows::{Dealt, Extent};
use crate::view::layout::index_type;
use crate::view::{Dims, View};
use dml_kernel::{DType, ScalarType};
use smallvec::SmallVec;

/// What errors call the operator.
pub const NAME: &str = "cross_entropy_loss";

/// Checked arguments. Every row is the logits of one target.
pub struct Problem {
    /// Logits, dense.
    pub input: View,
    /// How the rows lie in `input`, in the order of the targets.
    pub extent: Extent,
    /// Contiguous.
    pub target: View,
    /// Of each class, contiguous.
    pub weight: Option<View>,
    pub reduction: Reduce,
    pub ignore: i64,
    /// How much of each target's weight all classes share.
    pub smoothing: f64,
}

impl Problem {
    /// The dtype of what is computed.
    pub fn computed(&self) -> DType {
        accumulator(self.input.dtype)
    }

    /// What kernels are specialised by that access `others` as they do the logits.
    pub fn spec(&self, others: &[&View]) -> Spec {
        let index = index_type(self.input.numel());
        let accessed: SmallVec<[(u64, u64); 2]> =
            others.iter().copied().chain([&self.input]).map(|t| (t.data, t.dtype.bytes())).collect();
        let Extent { n, inner, rows } = self.extent;
        let rows = if inner == 1 {
            Dealt::neighbours(index, n, self.input.dtype, &accessed)
        } else {
            Dealt::columns(index, n, rows)
        };
        Spec {
            input: self.input.dtype,
            target: self.target.dtype,
            weight: self.weight.as_ref().map(|w| w.dtype),
            smooth: self.smoothing > 0.0,
            rows,
        }
    }
}

pub fn without(sizes: &[i64], dim: usize) -> Dims {
    let mut rest = Dims::from_slice(sizes);
    rest.remove(dim);
    rest
}

/// Whether the classes, dimension `dim`, are neighbours and all else lies in order around them.
pub fn classes_last(input: &View, dim: usize) -> bool {
    let last = |of: &[i64]| {
        let mut moved = without(of, dim);
        moved.push(of[dim]);
        moved
    };
    let (sizes, strides) = (last(&input.sizes), last(&input.strides));
    input.as_strided(&sizes, &strides, 0).is_contiguous()
}

/// What changes the code of every kernel here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub input: DType,
    pub target: DType,
    pub weight: Option<DType>,
    pub smooth: bool,
    pub rows: Dealt,
}

impl Spec {
    pub fn index(&self) -> ScalarType {
        self.rows.rows.index
    }

    pub fn computed(&self) -> DType {
        accumulator(self.input)
    }
}
