//! Cost model: the work of launches, in the unit of [`Launch::work`](dml_engine::Launch::work), for
//! launches that compute more than their memory accesses account for.

use dml_kernel::DType;

/// Multiplications and additions of a matrix unit in the time of one on a GPU's other units: a
/// lower bound of all adapters with matrix units.
const MATRIX_UNIT: u64 = 8;

/// The work of `count` multiplications with additions, of a dtype. Slow GPUs take 16 times as long
/// for float64.
pub fn multiply_adds(dtype: DType, count: u64) -> u64 {
    count.saturating_mul(match dtype {
        DType::F64 => 32,
        DType::I64 => 8,
        _ => 2,
    })
}

/// The work of `count` multiplications with additions, on matrix units.
pub fn multiply_adds_on_units(count: u64) -> u64 {
    multiply_adds(DType::F32, count) / MATRIX_UNIT
}
