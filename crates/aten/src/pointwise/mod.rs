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
pub mod gamma;
pub mod glu;
pub mod operator;
pub mod orthogonal_polynomials;
pub mod piecewise_linear_activations;
pub mod power;
pub mod rrelu;
pub mod selection;
pub mod special;
pub mod ternary;
pub mod unary;
pub mod windows;

use crate::operator::Operator;

/// The overloads of these families.
pub const OPERATORS: &[&[Operator]] = &[
    activation::OPERATORS,
    arithmetic::OPERATORS,
    bessel::OPERATORS,
    binary::OPERATORS,
    comparison::OPERATORS,
    division::OPERATORS,
    error_function::OPERATORS,
    exponential_activations::OPERATORS,
    float_parts::OPERATORS,
    gamma::OPERATORS,
    glu::OPERATORS,
    orthogonal_polynomials::OPERATORS,
    piecewise_linear_activations::OPERATORS,
    power::OPERATORS,
    rrelu::OPERATORS,
    selection::OPERATORS,
    special::OPERATORS,
    ternary::OPERATORS,
    unary::OPERATORS,
    windows::OPERATORS,
];
