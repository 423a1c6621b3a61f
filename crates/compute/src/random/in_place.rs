//! Operators that fill a tensor with samples of a distribution whose parameters are scalars.

use dml_kernel::DType;

/// The exclusive upper bound of the range of integers, from 0 on, all of which a dtype represents
/// exactly.
pub fn exact_integer_bound(dtype: DType) -> i64 {
    match dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::U16 => 1 << 16,
        DType::I32 | DType::U32 => 1 << 31,
        DType::I64 | DType::U64 => i64::MAX,
        DType::F8E4M3FN | DType::F8E4M3FNUZ => (1 << 4) + 1,
        DType::F8E5M2 | DType::F8E5M2FNUZ => (1 << 3) + 1,
        DType::F16 | DType::C32 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 | DType::C64 => (1 << 24) + 1,
        DType::F64 | DType::C128 => (1 << 53) + 1,
    }
}
