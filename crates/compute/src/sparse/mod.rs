//! Sparse tensors: products of compressed rows, their indices, and conversions between layouts.

pub mod compressed_extremum;
pub mod compressed_mm;
pub mod coo_to_csr;
pub mod csr_to_coo;
pub mod invariants;
pub mod sampled_mm;
