//! Products of matrices and of tensors.

mod einsum;
mod products;
mod sparse_products;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [einsum::operators(), products::operators(), sparse_products::operators()].into_iter().flatten().collect()
}
