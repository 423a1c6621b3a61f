//! Elementwise functions of linear algebra.

use crate::functions;
use dml_kernel::math;

functions! {
    /// The sum of the products of pairs of operands, from left to right.
    MATRIX_EXP_COMBINATION = "matrix_exp_combination"(..v) => {
        let products = v.chunks_exact(2).map(|term| term[0] * term[1]);
        products.reduce(|sum, term| sum + term).unwrap_or_else(|| v[0].like(0.0))
    };
    /// An element of the diagonal plus a multiple of the identity.
    MATRIX_EXP_IDENTITY = "matrix_exp_identity"(x, identity) => x + identity;
    /// The exponential of a 1x1 matrix.
    MATRIX_EXP_SINGLE = "matrix_exp_single"(x) => math::exp(x);
    /// An element times the reciprocal of a singular value.
    LEAST_SQUARES_SCALED = "least_squares_scaled"(x, reciprocal) => x * reciprocal;
    /// The square of a norm.
    LEAST_SQUARES_SQUARED = "least_squares_squared"(norm) => norm * norm;
    /// The cross product of two vectors of three elements.
    CROSS = "cross"(..v) => {
        [(1, 2), (2, 0), (0, 1)].map(|(i, j)| v[i] * v[3 + j] - v[j] * v[3 + i])
    };
}
