//! Means and maxima over windows.

mod average;
mod max;
mod window;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [average::operators(), max::operators()].into_iter().flatten().collect()
}
