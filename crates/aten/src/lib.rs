//! PyTorch's operators on a dml device: schemas, arguments, rules for shapes and dtypes, errors,
//! and the table that lists them all. What is computed is in `dml_compute`.
//!
//! One family is one file. An operator is a function of [`Call`]; [`table::operators`] lists every
//! overload, with its schema:
//!
//! ```
//! use dml_aten::operator::schema;
//!
//! let softmax = dml_aten::operators().iter().find(|operator| operator.name == "aten::_softmax.out").expect("listed");
//! assert_eq!(schema::position(softmax.schema, "half_to_float"), 2);
//! assert_eq!(schema::written(softmax.schema).first, 3);
//! ```

#![deny(unsafe_code)]

pub mod matmul;
pub mod operator;
pub mod pointwise;
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
pub mod inference;
mod linear_algebra;
mod lists;
mod loss;
mod movement;
mod normalization;
mod quantization;
mod random;
mod recurrent;
mod reduction;
mod refusals;
mod sorting;
mod sparse;
mod spatial;
mod special_dtypes;

pub use operator::Operator;
pub use operator::call::{Arg, Call, Host, Ret};
pub use operator::error::{Error, Result, message_of_refused};
pub use refusals::{dispatch_checked, may_lack_kernels};
pub use special_dtypes::dispatch;
pub use table::operators;
