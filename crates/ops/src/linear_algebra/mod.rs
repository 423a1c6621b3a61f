//! Decompositions of matrices and systems of equations; products and distances of vectors beside matrix multiplication.

pub mod bisection;
pub mod block_pair;
pub mod cholesky;
pub mod cholesky_panel;
pub mod cholesky_rows;
pub mod column_norms;
pub mod cross;
pub mod deflation;
pub mod distance;
pub mod divide_and_conquer;
pub mod eigh;
pub mod element;
pub mod held_panel;
pub mod householder;
pub mod jacobi;
pub mod ldl;
pub mod ldl_blocks;
pub mod ldl_step;
pub mod least_squares;
pub mod line;
pub mod lu;
pub mod lu_held_panel;
pub mod lu_panel;
pub mod lu_rows;
pub mod matrices;
pub mod matrix_exponential;
pub mod one_sided_jacobi;
pub mod orthogonal;
pub mod panel_exchange;
pub mod permutation;
pub mod qr;
pub mod qr_held_panel;
pub mod qr_panel;
pub mod rotate_columns;
pub mod row_exchange;
pub mod row_sources;
pub mod secular_equation;
pub mod sorted_columns;
pub mod svd;
pub mod systems;
pub mod tile;
pub mod triangular;
pub mod triangular_columns;
pub mod tridiagonal;
pub mod two_sided_jacobi;
pub mod workgroup_sums;

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
