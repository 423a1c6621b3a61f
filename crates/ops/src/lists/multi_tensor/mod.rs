//! Operators on lists of tensors in one launch: each workgroup finds its tensor, and its part of it, in a table
//! (what CUDA's libraries call multi-tensor apply).
//!
//! The element's computation is that of the pointwise operator, so the bits are the same. What does not fit, such as strided
//! tensors, and lists whose tensors overlap each other, where order matters, goes one tensor after the other.

mod batch;
mod pointwise;
mod ranges;
mod signature;

pub use batch::{Row, split};
pub use pointwise::{run, run_variant};
