//! The operators of pooling over windows of images, in two and three dimensions.
//!
//! Tensors are viewed as `[batch, channels, spatial ...]` with their own strides
//! ([`crate::spatial::geometry`]). Backward passes gather: an element of the gradient visits the
//! windows that cover it, in a fixed order.

pub mod adaptive;
pub mod average;
pub mod max;
pub mod unpool;
pub mod window;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[adaptive::OPERATORS, average::OPERATORS, max::OPERATORS, unpool::OPERATORS];
