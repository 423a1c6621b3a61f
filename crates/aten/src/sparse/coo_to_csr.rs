//! The operator that converts coordinates (COO) to compressed rows (CSR): the beginning of each row
//! instead of each element's row.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::movement::copy::fill_with;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::coo_to_csr::convert;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    coo_to_csr(self, size, out_int32, out) {
        "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
        "aten::_convert_indices_from_coo_to_csr.out(Tensor self, int size, *, bool out_int32=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `rows` is the row of each element, in ascending order; the result is `[size + 1]`: the number of
/// elements before each of `size` rows, and the number before row `size`.
pub fn coo_to_csr(call: &mut Call, rows: &View, size: i64, int32: bool, out: Out) -> Result<()> {
    check!(rows.dim() <= 1, Runtime, "Input is supposed to be a vector, but got {} dimensional tensor.", rows.dim());
    check!(size >= -1, Runtime, "Trying to create tensor with negative dimension {0}: [{0}]", size.saturating_add(1));
    let dtype = if int32 { DType::I32 } else { DType::I64 };
    let out = structured::result(call, out.given(), dtype, &[size + 1])?;
    overlap::check_internal(&out)?;
    if rows.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else {
        let integral = !rows.dtype.is_float() && rows.dtype != DType::Bool;
        let name = "convert_indices_from_coo_to_csr_cpu";
        check!(integral, NotImplemented, "\"{name}\" not implemented for '{}'", rows.dtype);
        let most = i64::from(i32::MAX);
        check!(rows.numel() < most, NotImplemented, "{}: {} elements are too many for dml", call.name, rows.numel());
        if out.numel() > 0 {
            convert(call, rows, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
