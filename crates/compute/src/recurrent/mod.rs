//! Recurrent networks.
//!
//! [`cells`] is one step of one cell. [`recurrence`] computes all steps of one layer in one
//! direction: [`gates`] is a unit's computation at a step, [`steps`] gives the rows of steps in the
//! tensors, `plan` divides the work, `units` gives an invocation's units, `row_product` is a
//! workgroup's matrix product, and [`forward`] and [`backward`] are the kernels.

pub mod backward;
pub mod cells;
pub mod forward;
pub mod gates;
mod plan;
pub mod recurrence;
mod row_product;
pub mod steps;
mod units;
