//! Losses with special kernels.

pub mod cross_entropy;
pub mod ctc;
pub mod elementwise;
pub mod margin;
pub mod nll;
pub mod reduce;
