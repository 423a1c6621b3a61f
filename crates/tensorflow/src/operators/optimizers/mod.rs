//! Optimizers: each is an elementwise function of its variables, its numbers and the gradient.
//!
//! TensorFlow has each twice: of resources, and of references (`ResourceApplyAdam`, `ApplyAdam`).

mod dense;
mod steps;
mod table;

pub use dense::operators;
