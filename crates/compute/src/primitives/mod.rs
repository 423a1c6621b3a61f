//! Building blocks shared by several families of kernels: launching, rows, prefix sums, sorting,
//! indexed access.

mod accepted;
pub(crate) mod block_sort;
pub mod combine;
pub(crate) mod cost;
pub mod indexed_access;
pub mod kernel;
pub mod keyed_reduction;
pub(crate) mod list_table;
pub mod loops;
pub mod multi_copy;
pub mod prefix_sum;
pub(crate) mod radix_pass;
pub(crate) mod radix_sort;
pub mod registers;
mod row_copy;
pub mod row_operands;
pub mod rows;
pub(crate) mod segments;
pub(crate) mod sort_key;
#[cfg(test)]
pub(crate) mod validate;
mod vector_access;
