//! The checked arguments of a cross-entropy.

use crate::check;
use crate::loss::reduce::Reduce;
use crate::movement::copy::as_contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::rows::{Dealt, Extent};
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{DType, ScalarType};
use smallvec::SmallVec;

/// What errors call the operator.
pub const NAME: &str = "cross_entropy_loss";

/// Checked arguments. Every row is the logits of one target.
pub struct Problem {
    /// Logits, dense.
    pub input: Tensor,
    /// How the rows lie in `input`, in the order of the targets.
    pub extent: Extent,
    /// Contiguous.
    pub target: Tensor,
    /// Of each class, contiguous.
    pub weight: Option<Tensor>,
    pub reduction: Reduce,
    pub ignore: i64,
    /// How much of each target's weight all classes share.
    pub smoothing: f64,
}

impl Problem {
    pub fn new(
        call: &Call,
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore: i64,
        smoothing: f64,
    ) -> Result<Problem> {
        let dim = usize::from(input.dim() > 1);
        let fits = input.dim() > 0 && input.numel() > 0 && target.sizes.iter().eq(without(&input.sizes, dim).iter());
        check!(
            fits && input.dtype.is_float() && matches!(target.dtype, DType::I64 | DType::U8),
            Runtime,
            "{}: expected logits and the indices of classes, but got {} and {}",
            call.name,
            input.describe(),
            target.describe()
        );
        let classes = input.sizes[dim];
        if let Some(w) = weight {
            check!(
                w.sizes[..] == [classes] && w.dtype.is_float() && smoothing == 0.0,
                Runtime,
                "{}: expected weights of {classes} classes and no smoothing, but got {} and {smoothing}",
                call.name,
                w.describe()
            );
        }
        // Images whose channels come last are rows already.
        let last = classes_last(input, dim);
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
            reduction: Reduce::of(call, reduction)?,
            ignore,
            smoothing,
        })
    }

    /// The dtype of what is computed.
    pub fn computed(&self) -> DType {
        accumulator(self.input.dtype)
    }

    /// What kernels are specialised by that access `others` as they do the logits.
    pub fn spec(&self, others: &[&Tensor]) -> Spec {
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

fn without(sizes: &[i64], dim: usize) -> Dims {
    let mut rest = Dims::from_slice(sizes);
    rest.remove(dim);
    rest
}

/// Whether the classes, dimension `dim`, are neighbours and all else lies in order around them.
fn classes_last(input: &Tensor, dim: usize) -> bool {
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
