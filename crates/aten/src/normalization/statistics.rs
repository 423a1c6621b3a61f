//! The dtype of an input's statistics.

use crate::check;
use crate::operator::error::Result;
use dml_compute::view::View;
use dml_kernel::DType;

/// The dtype of parameters and statistics, checked: the input's dtype, or float32 for an input in
/// half precision.
pub fn parameter_dtype(input: &View, parameters: &[Option<&View>]) -> Result<DType> {
    let given = || parameters.iter().flatten().map(|t| t.dtype);
    let Some(first) = given().next() else { return Ok(input.dtype) };
    if first == input.dtype {
        for other in given() {
            check!(other == first, Runtime, "expected scalar type {first} but found {other}");
        }
        return Ok(first);
    }
    for other in given() {
        check!(other == DType::F32, Runtime, "mixed dtype: expect parameter to have scalar type of Float");
    }
    let half = matches!(input.dtype, DType::F16 | DType::BF16);
    check!(half, Runtime, "mixed dtype: all inputs must share same datatype.");
    Ok(DType::F32)
}
