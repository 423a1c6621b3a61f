//! Losses that PyTorch does not compose of other operators, and cross-entropy, which it does.

pub mod cross_entropy;
pub mod ctc;
pub mod elementwise;
pub mod margin;
pub mod nll;
pub mod reduce;
