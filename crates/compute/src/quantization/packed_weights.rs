//! Products of floats with weights of 8 or 4 bits, which are scaled.
//!
//! Few rows are multiplied by the weights as they lie in memory; for more, weights are written out
//! in the floats' dtype first, so that matrix units multiply.

use dml_kernel::DType;

pub const fn is_narrow_or_single(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}
