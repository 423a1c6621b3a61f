//! What launches do, in the unit of [`Launch::work`](dml_engine::Launch::work): for those that do
//! more than what they access counts as.

use dml_kernel::DType;

/// Multiplications and additions that a matrix unit does while a GPU's other units do one: fewer
/// than any that has them.
const MATRIX_UNIT: u64 = 8;

/// So many multiplications, each with an addition, of a dtype. Slow GPUs take 16 times as long for
/// float64.
pub fn multiply_adds(dtype: DType, count: u64) -> u64 {
    count.saturating_mul(match dtype {
        DType::F64 => 32,
        DType::I64 => 8,
        _ => 2,
    })
}

/// So many multiplications, each with an addition, on matrix units.
pub fn multiply_adds_on_units(count: u64) -> u64 {
    multiply_adds(DType::F32, count) / MATRIX_UNIT
}
