//! Recurrent networks.
//!
//! [`cells`] is one step of one cell, PyTorch's own operators. [`recurrence`] takes one layer in
//! one direction through all steps: [`gates`] is what happens to a unit at a step, [`steps`] in
//! which rows of the tensors steps are, [`plan`] how the work is cut up, [`units`] what an
//! invocation computes, [`row_product`] how a workgroup multiplies, and [`forward`] and
//! [`backward`] are the kernels.

pub mod backward;
pub mod cells;
pub mod forward;
pub mod gates;
pub mod plan;
pub mod recurrence;
pub mod row_product;
pub mod steps;
pub mod units;
