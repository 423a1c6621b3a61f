//! The operators of recurrent networks.
//!
//! [`cells`] is one step of one cell, PyTorch's own operators. [`layer`] is all steps of one layer
//! in one direction; its kernels are in `dml_compute::recurrent`.

pub mod cells;
pub mod layer;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[cells::OPERATORS, layer::OPERATORS];
