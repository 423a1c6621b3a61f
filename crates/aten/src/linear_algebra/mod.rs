//! Decompositions of matrices and systems of equations; products and distances of vectors beside
//! matrix multiplication.

pub mod arguments;
pub mod cholesky;
pub mod cross;
pub mod distance;
pub mod eigh;
pub mod ldl;
pub mod least_squares;
pub mod matrix_exponential;
pub mod qr;
pub mod svd;
pub mod systems;
pub mod triangular;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    cholesky::OPERATORS,
    cross::OPERATORS,
    distance::OPERATORS,
    eigh::OPERATORS,
    ldl::OPERATORS,
    least_squares::OPERATORS,
    matrix_exponential::OPERATORS,
    qr::OPERATORS,
    svd::OPERATORS,
    systems::OPERATORS,
    triangular::OPERATORS,
];
