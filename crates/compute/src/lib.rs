//! Computations on a device: views of memory, and kernels over them. The crate is independent of
//! frameworks: it has no schemas, no framework's operators and no framework's error messages.
//! Callers check dtypes and shapes.
//!
//! A computation takes a [`Context`] and operands as [`View`]s, and enqueues kernels that write to
//! existing results.

#![deny(unsafe_code)]
// The docs of public modules name the private ones that they use.
#![allow(rustdoc::private_intra_doc_links)]

/// `return Err(Error::Kind(format!(..)))` unless the condition holds.
#[macro_export]
macro_rules! check {
    ($cond:expr, $kind:ident, $($fmt:tt)+) => {
        // The condition is a value first: for a comparison of floats, which is false for NaN, the
        // negation is not the opposite comparison.
        if !std::convert::identity::<bool>($cond) {
            return Err($crate::error::Error::$kind(format!($($fmt)+)));
        }
    };
}

pub mod attention;
pub mod bounds;
pub mod catalogue;
pub mod complex;
pub mod context;
pub mod convolution;
pub mod creation;
pub mod detection;
pub mod dtype;
pub mod error;
pub mod fault;
pub mod fft;
pub mod host;
pub mod indexing;
pub mod linear_algebra;
pub mod lists;
pub mod loss;
pub mod matmul;
pub mod movement;
pub mod normalization;
pub mod pointwise;
pub mod primitives;
pub mod quantization;
pub mod random;
pub mod recurrent;
pub mod reduction;
pub mod scalar;
pub mod sorting;
pub mod sparse;
pub mod spatial;
pub mod text;
pub mod view;

pub use context::{Context, Environment, MatmulPrecision, Policy};
pub use error::{Error, Result};
pub use scalar::Scalar;
pub use view::{Dims, Location, View};
