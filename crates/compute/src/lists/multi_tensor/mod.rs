//! Operators on lists of tensors in one launch: each workgroup looks up its tensor, and its part of
//! the tensor, in a table (what CUDA's libraries call multi-tensor apply).
//!
//! Elements are computed by the pointwise operator's function, so the bits are the same. Tensors
//! that do not fit, such as strided ones, are computed one after the other, and so are lists whose
//! tensors overlap, where order matters.

pub mod batch;
mod pointwise;
mod ranges;
mod signature;

pub use crate::lists::multi_tensor::batch::Row;
pub use crate::lists::multi_tensor::batch::split;
pub use crate::lists::multi_tensor::pointwise::run;
