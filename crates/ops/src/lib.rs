//! PyTorch's operators on a dml device: shape and dtype rules, kernels, and the table that lists them all.
//!
//! One family is one file. An operator is a function of [`Call`]; [`table::operators`] lists every overload,
//! with its schema:
//!
//! ```
//! use dml_ops::operator::schema;
//!
//! let softmax = dml_ops::operators().iter().find(|operator| operator.name == "aten::_softmax.out").expect("listed");
//! assert_eq!(schema::position(softmax.schema, "half_to_float"), 2);
//! assert_eq!(schema::written(softmax.schema).first, 3);
//! ```

#![deny(unsafe_code)]

pub mod matmul;
pub mod operator;
pub mod pointwise;
pub mod primitives;
pub mod table;
pub mod tensor;

pub mod attention;
mod complex;
mod convolution;
mod creation;
mod detection;
mod fft;
mod float8;
mod indexing;
mod linear_algebra;
mod lists;
mod loss;
mod movement;
mod normalization;
mod quantization;
mod random;
mod recurrent;
mod reduction;
mod sorting;
mod sparse;
mod spatial;
mod special_dtypes;

pub use operator::Operator;
pub use operator::call::{Arg, Call, Host, MatmulPrecision, Ret, Scalar};
pub use operator::error::{Error, Result};
pub use special_dtypes::{asks_for_complex, run_special};
pub use table::operators;
pub use tensor::{DeviceKind, Dims, Tensor};
