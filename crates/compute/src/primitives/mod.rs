//! What kernels of several families are made of: launching, rows, prefix sums, sorting, indexed
//! access.

pub mod block_sort;
pub mod indexed_access;
pub mod kernel;
pub mod keyed_reduction;
pub mod list_table;
pub mod loops;
pub mod multi_copy;
pub mod prefix_sum;
pub mod radix_pass;
pub mod radix_sort;
pub mod row_copy;
pub mod row_operands;
pub mod rows;
pub mod segments;
pub mod sort_key;
#[cfg(test)]
pub mod validate;
pub mod wide_access;
pub mod work;
