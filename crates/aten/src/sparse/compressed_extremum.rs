//! Maxima or minima of the products of compressed rows (CSR) and a dense matrix, which
//! [`compressed_mm`](super::compressed_mm) sums.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sparse::compressed_mm::Given;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::sparse::compressed_extremum::{Operands, extremum};
use dml_compute::view::View;
use dml_kernel::DType;

/// The extremum of the products `values[e] * dense[indices[e], c]` of row `r`, `e` from
/// `offsets[r]` to `offsets[r + 1]`, and its `e`; for a row without entries 0, and the number of
/// all entries.
///
/// `offsets` (`[rows + 1]`) and `indices` (`[entries]`) are of one integer dtype, `values`
/// (`[entries]`) and `dense` (`[.., n]`) floats of one dtype; the entries' positions are int64. The
/// first of equal products wins; of NaNs, which are both largest and smallest, the last one.
pub fn extrema(
    call: &Call,
    Given { offsets, indices, values, .. }: Given,
    dense: &View,
    largest: bool,
) -> Result<[View; 2]> {
    let dtype = dense.dtype;
    let rows = offsets.numel() - 1;
    let index = matches!(offsets.dtype, DType::I32 | DType::I64) && indices.dtype == offsets.dtype;
    let shaped = offsets.dim() == 1 && indices.dim() == 1 && dense.dim() == 2 && rows >= 0;
    let weights = dtype.is_float() && values.dtype == dtype && values.sizes == indices.sizes;
    check!(
        index && shaped && weights,
        Runtime,
        "{}: offsets {}, indices {}, values {} and dense {} do not fit each other",
        call.name,
        offsets.describe(),
        indices.describe(),
        values.describe(),
        dense.describe()
    );
    let sizes = [rows, dense.sizes[1]];
    let (out, chosen_entries) = (call.empty(dtype, &sizes)?, call.empty(DType::I64, &sizes)?);
    if out.numel() > 0 {
        let (offsets, indices) = (&as_contiguous(call, offsets)?, &as_contiguous(call, indices)?);
        let (values, dense) = (&as_contiguous(call, values)?, &as_contiguous(call, dense)?);
        extremum(call, &Operands { offsets, indices, values, dense }, largest, &out, &chosen_entries)?;
    }
    Ok([out, chosen_entries])
}
