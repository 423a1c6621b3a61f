//! The checked arguments of a negative log-likelihood.

use crate::check;
use crate::loss::reduce::Reduce;
use crate::movement::copy::as_contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
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
    pub input: Tensor,
    pub target: Tensor,
    pub weight: Option<Tensor>,
    pub reduction: Reduce,
    pub ignore: i64,
    pub classes: i64,
    pub positions: i64,
}

impl Problem {
    /// Checks arguments as PyTorch does.
    pub fn new(
        call: &Call,
        rank: Rank,
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: i64,
        ignore: i64,
    ) -> Result<Problem> {
        let (sizes, targets) = (input.sizes.as_slice(), target.sizes.as_slice());
        let classes = match (rank, sizes) {
            (Rank::Rows, &[classes]) => {
                check!(
                    target.dim() <= 1 && target.numel() == 1,
                    Value,
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
        Ok(Problem {
            input: as_contiguous(call, input)?,
            target: as_contiguous(call, target)?,
            weight: weight.map(|w| as_contiguous(call, w)).transpose()?,
            reduction: Reduce::of(call, reduction)?,
            ignore,
            classes,
            positions: if rank == Rank::Images { sizes[2] * sizes[3] } else { 1 },
        })
    }

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
