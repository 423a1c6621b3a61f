//! Operators that move elements: copies, concatenation, flips, rolls, shuffles.

pub mod concatenation;
pub mod copies;
pub mod pixel_shuffle;
pub mod rearrange;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[concatenation::OPERATORS, copies::OPERATORS, pixel_shuffle::OPERATORS, rearrange::OPERATORS];
