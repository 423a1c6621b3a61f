//! Coordinates of the lower and the upper triangle of a matrix: tril_indices and triu_indices.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::creation::triangular_indices::{coordinates, left_of};
use dml_kernel::DType;

operators! {
    indices(row, col, offset, dtype; false) {
        "aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    }
    indices(row, col, offset, dtype; true) {
        "aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    }
}

/// `[2, count]`, in row-major order.
fn indices(call: &mut Call, rows: i64, columns: i64, offset: i64, dtype: Option<DType>, upper: bool) -> Result<()> {
    check!(rows >= 0, Runtime, "row must be non-negative, got{rows}");
    check!(columns >= 0, Runtime, "col must be non-negative, got{columns}");
    let dtype = dtype.unwrap_or(DType::I64);
    check!(
        matches!(dtype, DType::I64 | DType::I32),
        NotImplemented,
        "\"{}\" not implemented for '{dtype}'",
        if upper { "triu_indices" } else { "tril_indices" }
    );
    let offset = offset.clamp(-rows, columns);
    let diagonal = if upper { offset } else { offset + 1 };
    let left = left_of(rows, columns, diagonal);
    let count = if upper { rows * columns - left } else { left };
    let out = call.empty(dtype, &[2, count])?;
    if count > 0 {
        coordinates(call, rows, columns, diagonal, upper, &out)?;
    }
    call.ret(out);
    Ok(())
}
