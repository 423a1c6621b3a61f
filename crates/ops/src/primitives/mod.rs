//! What kernels of several families are made of: launching, rows, prefix sums, sorting, indexed access.

pub(crate) mod block_sort;
pub(crate) mod indexed_access;
pub mod kernel;
pub(crate) mod keyed_reduction;
pub(crate) mod list_table;
pub(crate) mod loops;
pub(crate) mod multi_copy;
pub(crate) mod prefix_sum;
pub(crate) mod radix_pass;
pub(crate) mod radix_sort;
pub(crate) mod row_copy;
pub mod row_operands;
pub(crate) mod rows;
pub(crate) mod segments;
pub mod sort_key;
#[cfg(test)]
pub mod validate;
pub(crate) mod wide_access;
pub(crate) mod work;
