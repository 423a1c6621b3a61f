//! PyTorch's operators on a dml device: shape and dtype rules, kernels, and the table that lists them all.
//!
//! One family is one file. An operator is a function of [`call::Call`]; [`table::operators`] lists every overload.

pub mod call;
pub mod error;
pub mod launch;
pub mod layout;
pub mod matmul;
pub mod pointwise;
pub mod promote;
pub mod table;
pub mod tensor;

mod accumulate;
mod activation;
mod arithmetic;
mod binary;
mod comparison;
mod concatenation;
mod convolution;
mod copy;
mod creation;
mod cross;
mod division;
mod embedding;
mod fault;
mod foreach;
mod gather;
mod grid_sampler;
mod histogram;
mod host;
mod indexing;
mod indirect;
mod loss;
mod memory_format;
mod movement;
mod multinomial;
mod nonzero;
mod normalization;
mod optimizer;
mod overlap;
mod padding;
mod pieces;
mod piecewise;
mod pooling;
mod power;
mod prefix;
mod radix;
mod random;
mod recurrent;
mod reduction;
mod rows;
mod rrelu;
mod sampling;
mod scan;
mod search;
mod selection;
mod smooth;
mod softmax;
mod sorting;
mod spatial;
mod special;
mod structured;
mod ternary;
mod triangle;
mod unary;
mod unfold;
mod unique;
mod unit;
mod upsample;
#[cfg(test)]
mod validate;

pub use call::{Arg, Call, Host, Ret, Scalar};
pub use error::{Error, Result};
pub use table::{Operator, operators};
pub use tensor::{Dims, Place, Tensor};
