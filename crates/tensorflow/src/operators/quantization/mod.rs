//! Floats that are rounded to what integers represent.

mod fake_quantize;
mod quantize_dequantize;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [fake_quantize::operators(), quantize_dequantize::operators()].into_iter().flatten().collect()
}
