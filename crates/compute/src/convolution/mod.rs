//! Convolutions and their gradients, as matrix products whose operands are windows over tensors:
//! nothing is unfolded in memory (implicit GEMM: Chetlur et al., "cuDNN: Efficient primitives for
//! deep learning", 2014).
//!
//! A convolution relates an inner side (a plain convolution's input), an outer side (its result)
//! and a weight `[outer channels, inner channels, kernel..]`. Each of three products computes one
//! of these from the other two. A transposed convolution and its gradients are the same three
//! products in other roles. If every channel is a separate group, every number is multiplied with
//! one number only, and `depthwise` sums directly; 3 x 3 windows are computed with fewer
//! multiplications where that is faster ([`winograd`]).

mod depthwise;
pub mod geometry;
pub mod named;
mod order;
pub mod overrideable;
pub mod passes;
mod products;
pub mod winograd;
