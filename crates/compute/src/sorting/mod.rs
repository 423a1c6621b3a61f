//! Sorting and selection along a dimension.
//!
//! Elements become unsigned keys (`key`). Rows that fit into a workgroup's memory are sorted there
//! (`tile`, `row_sort`); longer ones by a radix sort (`crate::primitives::radix_sort`). If only
//! some elements are needed, they are found by a radix selection (`row_select`, `select`).

pub(crate) mod functions;
pub(crate) mod key;
pub mod mode;
pub mod rank;
mod row_select;
mod row_sort;
pub mod search;
mod select;
pub mod sort;
mod tile;
pub mod unique;
