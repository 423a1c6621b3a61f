//! The checked arguments of a negative log-likelihood.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::loss::nll::problem::{Problem, Rank};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::view::View;
use dml_kernel::DType;

/// Checks the arguments as PyTorch does.
pub fn checked(
    call: &Call,
    rank: Rank,
    input: &View,
    target: &View,
    weight: Option<&View>,
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
        reduction: crate::loss::reduce::reduce_of(call, reduction)?,
        ignore,
        classes,
        positions: if rank == Rank::Images { sizes[2] * sizes[3] } else { 1 },
    })
}
