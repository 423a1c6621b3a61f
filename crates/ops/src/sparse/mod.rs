//! Sparse tensors: products of compressed rows, their indices, and conversions between layouts.

mod compressed_extremum;
mod compressed_mm;
pub mod coo_to_csr;
pub mod csr_to_coo;
mod sampled_mm;
mod sspaddmm;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    compressed_extremum::OPERATORS,
    compressed_mm::OPERATORS,
    coo_to_csr::OPERATORS,
    csr_to_coo::OPERATORS,
    sampled_mm::OPERATORS,
    sspaddmm::OPERATORS,
];
