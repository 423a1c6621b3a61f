//! The operators of convolutions and their gradients, computed as products whose operands are
//! windows over tensors: no im2col matrix is written to memory (implicit GEMM: Chetlur et al.,
//! "cuDNN: Efficient primitives for deep learning", 2014).
//!
//! A convolution relates an inner side (the input of a plain convolution), an outer side (its
//! result) and a weight `[outer channels, inner channels, kernel..]`. Each of the three is computed
//! from the other two by one of three products. A transposed convolution and its gradients are the
//! same three products in other roles. If every channel is a group, there is nothing to reuse, and
//! [`depthwise`] computes the sums without a matrix product; 3 x 3 windows are computed with fewer
//! multiplications where that is faster ([`winograd`]).

pub mod epilogue;
pub mod geometry;
pub mod named;
pub mod overrideable;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[named::OPERATORS, overrideable::OPERATORS, epilogue::OPERATORS];
