//! Operators that create tensors from numbers.

pub mod eye;
pub mod sequences;
pub mod triangle;
pub mod triangular_indices;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[eye::OPERATORS, sequences::OPERATORS, triangle::OPERATORS, triangular_indices::OPERATORS];
