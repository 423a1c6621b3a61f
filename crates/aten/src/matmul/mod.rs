//! The operators of matrix products, which [`dml_compute::matmul`] computes.

pub mod epilogue;
pub mod linear;
pub mod matrix_operators;
pub mod product;
pub mod vector_operators;

use crate::operator::Operator;
pub use product::check_dtype;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[matrix_operators::OPERATORS, vector_operators::OPERATORS, linear::OPERATORS, epilogue::OPERATORS];
