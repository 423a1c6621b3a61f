//! Decompositions and diagonals of matrices.

mod decompositions;
mod diagonals;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [decompositions::operators(), diagonals::operators()].into_iter().flatten().collect()
}
