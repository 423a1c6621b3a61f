//! Dtypes of intermediate results.

use dml_kernel::DType;

/// The dtype in which elements of a dtype are accumulated: f64 for doubles, f32 for other floats,
/// i64 for integers and bools.
pub fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ if dtype.is_float() => DType::F32,
        _ => DType::I64,
    }
}
