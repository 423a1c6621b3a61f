//! Pointwise launches that stand one after another, as one kernel.
//!
//! [`run`] goes over a list of commands, [`chain`] decides which launches are fused and finds their
//! kernel, [`plan`] writes it.

pub(crate) mod chain;
pub mod parameters;
mod plan;
pub(crate) mod run;
