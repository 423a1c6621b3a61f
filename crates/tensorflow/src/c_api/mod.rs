//! TensorFlow's C API: its functions, statuses, tensors and attributes. All pointers that
//! TensorFlow gives are used here, in [`platform`](crate::platform) and in
//! [`kernel`](crate::kernel) only.
#![allow(unsafe_code)]

pub mod attributes;
pub mod functions;
pub mod status;
pub mod tensor;

pub use attributes::Attributes;
