//! The arguments of a cross-entropy, and the common specialisation of its kernels.

use crate::dtype::accumulator;
use crate::loss::reduce::Reduce;
use crate::primitives::rows::{Extent, RowDistribution};
use crate::view::layout::index_type;
use crate::view::{Dims, View};
use dml_kernel::{DType, ScalarType};
use smallvec::SmallVec;

/// What becomes of a target that is no class.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// It is reported, its loss is 0, and so is its gradient.
    IsReported,
    /// Its loss is NaN, and so is its gradient; no class is ignored.
    IsNan,
}

/// The arguments. Every row has the logits of one target.
pub struct Problem {
    /// Logits, dense.
    pub input: View,
    /// The layout of rows in `input`, in the order of the targets.
    pub extent: Extent,
    /// The class of each row, int64 or uint8, contiguous.
    pub target: View,
    /// A weight for each class, contiguous.
    pub weight: Option<View>,
    /// The reduction of the losses.
    pub reduction: Reduce,
    /// The class whose rows are ignored.
    pub ignore: i64,
    /// What becomes of a target that is no class.
    pub unknown: Unknown,
    /// The operator's name in errors about an invalid class.
    pub name: &'static str,
    /// The fraction of each target's weight that is spread over all classes.
    pub smoothing: f64,
}

impl Problem {
    /// The dtype of the computation.
    pub fn computed(&self) -> DType {
        accumulator(self.input.dtype)
    }

    /// The specialisation of kernels that access `others` element by element, like the logits.
    pub(super) fn spec(&self, others: &[&View]) -> Spec {
        let index = index_type(self.input.numel());
        let accessed: SmallVec<[(u64, u64); 2]> =
            others.iter().copied().chain([&self.input]).map(|t| (t.data, t.dtype.bytes())).collect();
        let Extent { n, inner, rows } = self.extent;
        let rows = if inner == 1 {
            RowDistribution::contiguous(index, n, self.input.dtype, &accessed)
        } else {
            RowDistribution::columns(index, n, rows)
        };
        Spec {
            input: self.input.dtype,
            target: self.target.dtype,
            weight: self.weight.as_ref().map(|w| w.dtype),
            smooth: self.smoothing > 0.0,
            unknown: self.unknown,
            rows,
        }
    }
}

/// Sizes or strides without those of dimension `dim`.
pub fn without(sizes: &[i64], dim: usize) -> Dims {
    let mut rest = Dims::from_slice(sizes);
    rest.remove(dim);
    rest
}

/// Whether the classes, dimension `dim`, are innermost in memory and all other dimensions are in
/// order.
pub fn classes_are_contiguous(input: &View, dim: usize) -> bool {
    let last = |of: &[i64]| {
        let mut moved = without(of, dim);
        moved.push(of[dim]);
        moved
    };
    let (sizes, strides) = (last(&input.sizes), last(&input.strides));
    input.as_strided(&sizes, &strides, 0).is_contiguous()
}

/// Specialisation common to these kernels: everything that changes their code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    pub(super) input: DType,
    pub(super) target: DType,
    pub(super) weight: Option<DType>,
    pub(super) smooth: bool,
    pub(super) unknown: Unknown,
    pub(super) rows: RowDistribution,
}

impl Spec {
    pub(super) fn index(&self) -> ScalarType {
        self.rows.rows.index
    }

    pub(super) fn computed(&self) -> DType {
        accumulator(self.input)
    }
}
