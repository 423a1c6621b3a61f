//! The order of elements.

mod search;
mod top_k;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [search::operators(), top_k::operators()].into_iter().flatten().collect()
}
