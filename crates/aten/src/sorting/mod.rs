//! The operators of sorting and selection along a dimension.
//!
//! Elements are converted to unsigned keys ([`key`]). Rows that fit a workgroup's shared memory are
//! sorted there ([`tile`], [`row_sort`]); longer ones by a radix sort
//! ([`crate::primitives::radix_sort`]). If only some ranks are needed, they are found by a radix
//! selection ([`row_select`], [`select`]).

pub mod mode;
pub mod rank;
pub mod search;
pub mod sort;
pub mod unique;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] =
    &[mode::OPERATORS, rank::OPERATORS, search::OPERATORS, sort::OPERATORS, unique::OPERATORS];
