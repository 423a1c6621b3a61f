//! `renorm`: slices whose norm is above a limit are scaled down to it.

use dml_kernel::Value;

/// What a slice of this norm is multiplied by; the small number is PyTorch's.
pub fn factor<'b>(norm: Value<'b>, limit: Value<'b>) -> Value<'b> {
    norm.gt(limit).select(limit / (norm + 1e-7), 1.0)
}
