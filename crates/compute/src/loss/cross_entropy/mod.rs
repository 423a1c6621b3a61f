//! Cross-entropy of logits with class indices, fused: the losses read the logits once; the gradient
//! reads them once and is written once. Two numbers are saved for each row: its largest element and
//! the logarithm of its sum of exponentials. A single log-sum-exp would lose the digits of small
//! losses if logits are large.

pub mod backward;
pub mod forward;
pub mod problem;
