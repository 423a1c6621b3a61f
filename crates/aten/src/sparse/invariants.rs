//! The operator that checks the indices of compressed tensors (CSR, CSC, BSR, BSC).

use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::sparse::invariants::{Invariant, violated};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    validate(is_crow, compressed_idx, plain_idx, cdim, dim, nnz) {
        "aten::_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, int cdim, int dim, int nnz) -> ()",
    }
}

/// `offsets` are `[batch.., rows + 1]`, `indices` `[batch.., nnz]` into a dimension of size `dim`.
/// Where several invariants are violated, the CPU names that of the row it reaches first, and this
/// the first in their order.
fn validate(
    call: &mut Call,
    is_crow: bool,
    offsets: &View,
    indices: &View,
    rows: i64,
    dim: i64,
    nnz: i64,
) -> Result<()> {
    let (compressed, plain) = if is_crow { ("crow_indices", "col_indices") } else { ("ccol_indices", "row_indices") };
    let (row_count, column_count) = if is_crow { ("nrows", "ncols") } else { ("ncols", "nrows") };
    for t in [offsets, indices] {
        check!(t.dim() > 0, Index, "Dimension specified as -1 but tensor has no dimensions");
    }
    check!(
        offsets.size(-1) == rows + 1,
        Runtime,
        "{compressed} have wrong shape: {compressed}.shape[-1] = {} is not equal to {row_count} + 1 = {}",
        offsets.size(-1),
        rows + 1
    );
    check!(
        indices.size(-1) == nnz,
        Runtime,
        "{plain} have wrong shape: {plain}.shape[-1] = {} is not equal to nnz = {nnz}",
        indices.size(-1)
    );
    check!(
        matches!(indices.dtype, DType::I32 | DType::I64),
        NotImplemented,
        "\"compressed_index_invariance_checks_cpu\" not implemented for '{}'",
        indices.dtype
    );
    check!(offsets.dtype == indices.dtype, Runtime, "Found dtype {} but expected {}", offsets.dtype, indices.dtype);
    check!(
        offsets.sizes[..offsets.dim() - 1] == indices.sizes[..indices.dim() - 1],
        Runtime,
        "{}: {compressed} {} and {plain} {} have different batches",
        call.name,
        offsets.describe(),
        indices.describe()
    );
    if offsets.numel() == 0 {
        return Ok(());
    }
    let (offsets, indices) = (as_contiguous(call, offsets)?, as_contiguous(call, indices)?);
    let Some(invariant) = violated(call, &offsets, &indices, dim)? else { return Ok(()) };
    let claim = match invariant {
        Invariant::IndexBounds => format!("`0 <= {plain} < {column_count}`"),
        Invariant::FirstOffset => format!("`{compressed}[..., 0] == 0`"),
        Invariant::LastOffset => format!("`{compressed}[..., -1] == nnz`"),
        Invariant::RowLength => {
            format!("`0 <= {compressed}[..., 1:] - {compressed}[..., :-1] <= {column_count}`")
        }
        Invariant::Order => format!(
            "`{plain}[..., {compressed}[..., i - 1]:{compressed}[..., i]] for all i = 1, ..., {row_count} are sorted \
             and distinct along the last dimension values`"
        ),
    };
    Err(Error::Runtime(format!("{claim} is not satisfied.")))
}
