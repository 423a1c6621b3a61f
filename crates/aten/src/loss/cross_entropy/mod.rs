//! Cross-entropy of logits with the indices of classes, fused: the losses read the logits once,
//! their gradient reads them once and is written once. Of a row are kept its largest element and
//! the logarithm of its sum, apart: added up they would lose the digits of small losses beside
//! large logits.
//!
//! The plugin calls these for `aten::cross_entropy_loss`, with arguments that it has checked
//! (`plugin/cross_entropy.cpp`).

pub mod backward;
pub mod forward;
mod problem;
