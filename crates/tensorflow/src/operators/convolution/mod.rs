//! Convolutions, what TensorFlow joins to them, biases of channels.

mod bias;
mod convolutions;
mod fused;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [bias::operators(), convolutions::operators(), fused::operators()].into_iter().flatten().collect()
}
