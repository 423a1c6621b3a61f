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

mod activation;
mod arithmetic;
mod comparison;
mod convolution;
mod copy;
mod creation;
mod fault;
mod foreach;
mod host;
mod loss;
mod pooling;
mod random;
mod reduction;
mod scan;
mod selection;
mod softmax;
mod structured;
mod ternary;
mod unary;
#[cfg(test)]
mod validate;

pub use call::{Arg, Call, Host, Ret, Scalar};
pub use error::{Error, Result};
pub use table::{Operator, operators};
pub use tensor::{Dims, Place, Tensor};
