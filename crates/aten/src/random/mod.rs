//! The operators of random numbers.

pub mod distributions;
pub mod dropout;
pub mod fill;
pub mod in_place;
pub mod multinomial;
pub mod permutation;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    distributions::OPERATORS,
    dropout::OPERATORS,
    in_place::OPERATORS,
    multinomial::OPERATORS,
    permutation::OPERATORS,
];
