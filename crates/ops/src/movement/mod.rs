//! Elements moved as they are: copies, concatenation, flips, rolls.

pub mod concatenation;
pub mod copy;
pub mod rearrange;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[concatenation::OPERATORS, copy::OPERATORS, rearrange::OPERATORS];
