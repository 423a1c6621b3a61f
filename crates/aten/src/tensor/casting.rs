//! The dtypes to which results may be written.

use dml_kernel::DType;

/// PyTorch's `torch.can_cast`: whether a result of one dtype may be written to a tensor of another.
pub const fn can_cast(from: DType, to: DType) -> bool {
    if from.is_complex() || to.is_complex() {
        return to.is_complex();
    }
    let to_integer_ok = !from.is_float() || to.is_float();
    let to_bool_ok = matches!(from, DType::Bool) || !matches!(to, DType::Bool);
    to_integer_ok && to_bool_ok
}
