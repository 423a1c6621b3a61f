//! Softmax and losses.

mod ctc;
mod logits;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [ctc::operators(), logits::operators()].into_iter().flatten().collect()
}
