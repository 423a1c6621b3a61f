//! Pooling over windows of images, in two and three dimensions.
//!
//! Tensors are viewed as `[batch, channels, spatial ...]` with their own strides
//! ([`crate::spatial::geometry`]). Backward passes gather: an element of the gradient visits the
//! windows that cover it, in a fixed order.

pub mod adaptive;
pub mod average;
pub mod max;
pub mod max_kernel;
pub mod unpool;
pub mod window;
pub mod windows;
