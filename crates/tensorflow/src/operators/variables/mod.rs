//! Variables: assignments and optimizers.

mod assignments;
mod optimizers;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [assignments::operators(), optimizers::operators()].into_iter().flatten().collect()
}
