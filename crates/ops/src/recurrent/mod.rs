//! Recurrent networks.

pub mod cells;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[cells::OPERATORS];
