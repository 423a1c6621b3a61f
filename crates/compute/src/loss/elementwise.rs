//! Losses that compare an input with a target element by element: mse, smooth l1, huber, binary cross-entropy.

use crate::fault::Refusal;
use crate::pointwise::kernel::{Domain, Guard};

/// The input and the target of binary cross-entropy.
pub const PROBABILITIES: &[Guard] = &[
    Guard {
        operand: 0,
        domain: Domain::Probability,
        refusal: Refusal::Value("all elements of input should be between 0 and 1"),
    },
    Guard {
        operand: 1,
        domain: Domain::Probability,
        refusal: Refusal::Value("all elements of target should be between 0 and 1"),
    },
];
