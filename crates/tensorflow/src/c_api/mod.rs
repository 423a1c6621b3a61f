//! TensorFlow's C API. All pointers that TensorFlow gives, and all its functions, are used here and
//! in [`platform`](crate::platform) only.
#![allow(unsafe_code)]

pub mod attributes;
pub mod call;
pub mod functions;
pub mod registration;
pub mod status;
pub mod tensor;
pub mod variables;

pub use attributes::Attributes;
pub use call::Call;
