//! Tensors that are created from numbers.

pub mod sequences;
pub mod triangle;
pub mod triangular_indices;
