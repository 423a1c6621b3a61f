//! Pointwise launches that stand one after another, as one kernel.

pub(crate) mod chain;
pub mod parameters;
mod plan;
