//! Elements of matrix units as dtypes.

use dml_gpu::MatrixElement;
use dml_kernel::DType;

/// The dtype of a matrix's elements; `None` if kernels have no such dtype.
pub fn element_dtype(element: MatrixElement) -> Option<DType> {
    Some(match element {
        MatrixElement::F16 => DType::F16,
        MatrixElement::Bf16 => DType::BF16,
        MatrixElement::F32 => DType::F32,
        MatrixElement::I8 => DType::I8,
        MatrixElement::U8 => DType::U8,
        MatrixElement::I32 => DType::I32,
        _ => return None,
    })
}
