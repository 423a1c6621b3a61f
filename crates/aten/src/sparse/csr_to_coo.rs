//! The operator that converts compressed rows (CSR) to coordinates (COO): each element's row
//! instead of the beginning of each row.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::csr_to_coo::convert;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    csr_to_coo(crow_indices, col_indices, out_int32, transpose, out) {
        "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False) -> Tensor",
        "aten::_convert_indices_from_csr_to_coo.out(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `crow` is `[batch.., rows + 1]`, `col` is `[batch.., nnz]`; the result is
/// `[batch dimensions + 2, batches * nnz]`, one row for each coordinate.
pub fn csr_to_coo(call: &mut Call, crow: &View, col: &View, int32: bool, transpose: bool, out: Out) -> Result<()> {
    check!(
        crow.dim() == col.dim(),
        Runtime,
        "crow_indices and col_indices are supposed to have the same dimensionality, but got {} and {} dimensional \
         tensors, respectively.",
        crow.dim(),
        col.dim()
    );
    check!(crow.dim() > 0, Index, "Dimension specified as -1 but tensor has no dimensions");
    let dtype = if int32 { DType::I32 } else { DType::I64 };
    let (batch, count) = (crow.dim() - 1, col.numel());
    let out = structured::result(call, out.given(), dtype, &[crow.dim() as i64 + 1, count])?;
    overlap::check_internal(&out)?;
    let (rows, nnz) = (crow.size(-1) - 1, col.size(-1));
    if rows <= 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if nnz > 0 {
        let integral = !crow.dtype.is_float() && crow.dtype != DType::Bool;
        let name = "convert_indices_from_csr_to_coo_cpu";
        check!(integral, NotImplemented, "\"{name}\" not implemented for '{}'", crow.dtype);
        check!(rows < i64::from(i32::MAX), NotImplemented, "{}: {rows} rows are too many for dml", call.name);
        let batches: i64 = crow.sizes[..batch].iter().product();
        check!(
            count == batches * nnz,
            Runtime,
            "The size of tensor a ({count}) must match the size of tensor b ({}) at non-singleton dimension 1",
            batches * nnz
        );
        if count > 0 {
            convert(call, crow, col, &out, transpose)?;
        }
    }
    call.ret(out);
    Ok(())
}
