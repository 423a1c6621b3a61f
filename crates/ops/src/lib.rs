//! PyTorch's operators on a dml device: shape and dtype rules, kernels, and the table that lists them all.
//!
//! One family is one file. An operator is a function of [`call::Call`]; [`table::operators`] lists every overload.

pub mod matmul;
pub mod operator;
pub mod pointwise;
pub mod primitives;
pub mod table;
pub mod tensor;

mod attention;
mod convolution;
mod creation;
mod indexing;
mod linear_algebra;
mod lists;
mod loss;
mod movement;
mod normalization;
mod random;
mod recurrent;
mod reduction;
mod sorting;
mod sparse;
mod spatial;

pub use operator::Operator;
pub use operator::call::{Arg, Call, Host, Ret, Scalar};
pub use operator::error::{Error, Result};
pub use table::operators;
pub use tensor::{DeviceKind, Dims, Tensor};
