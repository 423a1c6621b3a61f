//! The operators of sparse tensors: products of compressed rows, their indices, and conversions
//! between layouts.

pub mod compressed_extremum;
pub mod compressed_mm;
pub mod coo_mm;
pub mod coo_to_csr;
pub mod coo_values;
pub mod coordinates;
pub mod csr_to_coo;
pub mod dense;
pub mod invariants;
pub mod reduced_mm;
pub mod sampled_mm;
pub mod sspaddmm;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    compressed_mm::OPERATORS,
    coo_mm::OPERATORS,
    coo_to_csr::OPERATORS,
    coo_values::OPERATORS,
    coordinates::OPERATORS,
    csr_to_coo::OPERATORS,
    invariants::OPERATORS,
    reduced_mm::OPERATORS,
    sampled_mm::OPERATORS,
    sspaddmm::OPERATORS,
];
