//! Optimizers: each is an elementwise function of its variables, its numbers and the gradient.
//!
//! TensorFlow has each twice: of resources, and of references (`ResourceApplyAdam`, `ApplyAdam`).
//! It has some four times: also with a gradient that has rows of the parameter alone
//! (`ResourceSparseApply...`, `SparseApply...`).

mod dense;
mod sparse;
mod steps;
mod table;

use super::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [dense::operators(), sparse::operators()].into_iter().flatten().collect()
}
