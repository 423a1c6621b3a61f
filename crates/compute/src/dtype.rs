//! Dtypes of intermediate results.

use dml_kernel::DType;

/// The dtype in which elements of a dtype are accumulated: doubles in f64, other floats in f32,
/// integers and flags in i64.
pub fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ if dtype.is_float() => DType::F32,
        _ => DType::I64,
    }
}
