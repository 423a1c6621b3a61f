//! Operators that compute each element of their results from the same element of their inputs.

pub mod activation;
pub mod arithmetic;
pub mod bessel;
pub mod binary;
pub mod comparison;
pub mod division;
pub mod error_function;
pub mod exponential_activations;
pub mod float_parts;
pub mod function;
pub mod gamma;
pub mod glu;
pub mod kernel;
pub mod operator;
pub mod orthogonal_polynomials;
pub mod piecewise_linear_activations;
pub mod power;
pub mod rrelu;
pub mod selection;
pub mod special;
pub mod ternary;
pub mod unary;
