//! Sparse tensors: their indices, and conversions between layouts.

pub mod coo_to_csr;
pub mod csr_to_coo;
mod sspaddmm;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[coo_to_csr::OPERATORS, csr_to_coo::OPERATORS, sspaddmm::OPERATORS];
