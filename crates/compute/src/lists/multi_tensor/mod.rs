//! Operators on lists of tensors in one launch: each workgroup finds its tensor, and its part of
//! it, in a table (what CUDA's libraries call multi-tensor apply).
//!
//! The element's computation is that of the pointwise operator, so the bits are the same. What does
//! not fit, such as strided tensors, and lists whose tensors overlap each other, where order
//! matters, goes one tensor after the other.

pub mod batch;
pub mod pointwise;
pub mod ranges;
pub mod signature;

pub use crate::lists::multi_tensor::batch::Row;
pub use crate::lists::multi_tensor::batch::split;
pub use crate::lists::multi_tensor::pointwise::run;
