//! Fused cross-entropy of logits and class indices: the losses read the logits once, and their
//! gradient reads them once and is written once. For each row the largest element and the logarithm
//! of the sum of exponentials are saved separately: their sum would lose the digits of small losses
//! for large logits.
//!
//! The plugin calls these for `aten::cross_entropy_loss` (`plugin/operators/cross_entropy.cpp`),
//! and leaves to PyTorch's composite what the first one declines.

pub mod backward;
pub mod forward;
mod problem;
