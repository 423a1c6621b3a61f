//! The operators of decompositions and systems of equations, and products and distances of vectors.

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

/// The overloads of this folder.
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
