//! Sorting and selection along a dimension.
//!
//! Elements become unsigned keys ([`key`]). Rows that fit a workgroup's memory are sorted there
//! ([`tile`], [`row_sort`]); longer ones by a radix sort ([`crate::primitives::radix_sort`]). Where
//! only some elements are wanted, they are found by a radix selection ([`row_select`], [`select`]).

pub mod functions;
pub mod key;
pub mod mode;
pub mod rank;
pub mod row_select;
pub mod row_sort;
pub mod search;
pub mod select;
pub mod sort;
pub mod tile;
pub mod unique;
