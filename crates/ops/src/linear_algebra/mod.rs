//! Products and distances of vectors and matrices beside matrix multiplication.

pub mod cross;
pub mod distance;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[cross::OPERATORS, distance::OPERATORS];
