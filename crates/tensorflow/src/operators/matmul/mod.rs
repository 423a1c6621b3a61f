//! Products of matrices and of tensors.

mod einsum;
mod products;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [einsum::operators(), products::operators()].into_iter().flatten().collect()
}
