//! Sparse tensors: products of compressed rows, their indices, and conversions between layouts.

pub mod compressed_extremum;
pub mod compressed_mm;
pub mod coo_to_csr;
pub mod csr_to_coo;
pub mod sampled_mm;
pub mod sspaddmm;

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
