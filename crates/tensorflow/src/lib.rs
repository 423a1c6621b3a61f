//! The plugin that makes every adapter a device of TensorFlow: a `PluggableDevice` of type GPU.
//!
//! TensorFlow loads the library, and calls [`SE_InitPlugin`](platform::SE_InitPlugin) for the
//! devices and [`TF_InitKernel`](operators::TF_InitKernel) for the kernels. Nothing of TensorFlow
//! is needed to build it: the C API's functions are looked up in the library that the process has
//! loaded, and its structures are declared here.
//!
//! | module | content |
//! |---|---|
//! | `c_api` | TensorFlow's C functions, statuses, tensors, attributes |
//! | `platform` | devices, memory, streams, events, copies, Grappler's passes |
//! | `kernel` | what an operator declares, a kernel's call, variables, the registration |
//! | `operators` | TensorFlow's operators, by family, on `dml-compute` |
//!
//! The unsafe code is in `c_api`, `platform` and `kernel`.

#![deny(unsafe_code)]
// The docs of public modules name the private ones that they use.
#![allow(rustdoc::private_intra_doc_links)]

pub mod c_api;
mod dtype;
mod error;
pub mod kernel;
pub mod operators;
pub mod platform;
mod settings;

pub use error::{Error, Result};
