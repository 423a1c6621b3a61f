//! Sparse tensors: their indices, and conversions between layouts.

pub mod csr_to_coo;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[csr_to_coo::OPERATORS];
