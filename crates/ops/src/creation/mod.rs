//! Tensors made from numbers.

pub mod factories;
pub mod triangular_indices;
