//! Sorting and selection along a dimension.
//!
//! Elements become unsigned keys ([`key`]). Rows that fit a workgroup's memory are sorted there ([`tile`]); longer ones
//! by a radix sort ([`crate::primitives::radix_sort`]), or, where only some elements are wanted, by a radix selection ([`select`]).

pub mod key;
mod mode;
pub mod rank;
mod row_sort;
mod search;
mod select;
pub mod sort;
mod tile;
mod unique;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[mode::OPERATORS, rank::OPERATORS, search::OPERATORS, sort::OPERATORS, unique::OPERATORS];
