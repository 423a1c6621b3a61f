//! Convolutions and their gradients, as products whose operands are windows over tensors: nothing
//! is unfolded in memory (implicit GEMM: Chetlur et al., "cuDNN: Efficient primitives for deep
//! learning", 2014).
//!
//! A convolution relates an inner side (of a plain convolution: its input), an outer side (its
//! result) and a weight `[outer channels, inner channels, kernel..]`. There are three products,
//! each computes one from the other two. A transposed convolution and its gradients are the same
//! three in other roles. Where every channel is a group of its own, nothing is multiplied with more
//! than one number, and [`depthwise`] takes the sums by itself; windows of 3 x 3 are products of
//! fewer multiplications where that is faster ([`winograd`]).

pub mod geometry;
pub mod named;
pub mod overrideable;

use crate::operator::Operator;

/// This folder's overloads.
pub const OPERATORS: &[&[Operator]] = &[named::OPERATORS, overrideable::OPERATORS];
