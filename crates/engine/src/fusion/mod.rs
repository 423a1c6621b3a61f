//! Fusion of consecutive pointwise launches into one kernel.

pub(crate) mod chain;
pub mod parameters;
mod plan;
