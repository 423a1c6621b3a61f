//! The plugin that makes every adapter a device of TensorFlow: a `PluggableDevice` of type GPU.
//!
//! TensorFlow loads the library, and calls [`SE_InitPlugin`](platform::SE_InitPlugin) for the
//! devices and [`TF_InitKernel`](operators::TF_InitKernel) for the kernels. Nothing of TensorFlow
//! is needed to build it: the C API's functions are looked up in the library that the process has
//! loaded, and its structures are declared here.
//!
//! | module | content |
//! |---|---|
//! | `c_api` | TensorFlow's C functions, statuses, tensors, attributes; a kernel's call |
//! | `platform` | devices, memory, streams, events, copies, Grappler's passes |
//! | `operators` | TensorFlow's operators, by family, on `dml-compute` |
//!
//! The unsafe code is in `c_api` and `platform`.

#![deny(unsafe_code)]

pub mod c_api;
mod dtype;
mod error;
pub mod operators;
pub mod platform;

pub use error::{Error, Result};
