//! The product of compressed rows (CSR) and a dense matrix: each row of the result is a sum of rows
//! of the dense matrix, added up in the order of the row's entries, so that the bits are the same
//! each time.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::compressed_mm::multiply;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // Row `r` of the result is `alpha` times the sum over `e` from `offsets[r]` to `offsets[r + 1]`
    // of `values[e]` (or 1) times row `indices[e]` of `dense`, and `beta` times row `r` of
    // `addend`.
    compressed_mm(offsets, indices, values, dense, addend, beta, alpha) {
        "torch_dml::compressed_mm(Tensor offsets, Tensor indices, Tensor? values, Tensor dense, Tensor? addend, Scalar beta, Scalar alpha) -> Tensor",
    }
}

/// `offsets` (`[rows + 1]`) and `indices` (`[entries]`) are of one integer dtype, `values`
/// (`[entries]`), `dense` (`[.., n]`) and `addend` (`[rows, n]`) of one other. Integers wrap;
/// halves are added up in float32 and rounded once. An index that `dense` has no row for is
/// reported.
fn compressed_mm(
    call: &mut Call,
    offsets: &View,
    indices: &View,
    values: Option<&View>,
    dense: &View,
    addend: Option<&View>,
    beta: Number,
    alpha: Number,
) -> Result<()> {
    let dtype = dense.dtype;
    check!(dtype != DType::Bool, NotImplemented, "\"addmm_sparse_dense\" not implemented for '{dtype}'");
    let (entries, rows) = (indices.numel(), offsets.numel() - 1);
    let index = matches!(offsets.dtype, DType::I32 | DType::I64) && indices.dtype == offsets.dtype;
    let shaped = offsets.dim() == 1 && indices.dim() == 1 && dense.dim() == 2 && rows >= 0;
    let alike = |t: &View, sizes: &[i64]| t.dtype == dtype && t.sizes[..] == *sizes;
    check!(
        index
            && shaped
            && values.is_none_or(|t| alike(t, &[entries]))
            && addend.is_none_or(|t| alike(t, &[rows, dense.sizes[1]])),
        Runtime,
        "{}: offsets {}, indices {} and dense {} do not fit each other or the others",
        call.name,
        offsets.describe(),
        indices.describe(),
        dense.describe()
    );
    let n = dense.sizes[1];
    let added = addend.filter(|_| beta.to_f64() != 0.0);
    let out = call.empty(dtype, &[rows, n])?;
    if out.numel() > 0 {
        match added {
            // Nothing is multiplied.
            None if entries == 0 || dense.numel() == 0 => fill_with(call, &out, Number::Int(0))?,
            _ => multiply(call, [offsets, indices], values, dense, added, [beta, alpha], &out)?,
        }
    }
    call.ret(out);
    Ok(())
}
