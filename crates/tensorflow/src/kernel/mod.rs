//! Kernels: what an operator declares, what a call has, and the registration.
#![allow(unsafe_code)]

pub mod call;
pub mod operator;
pub mod registration;
pub mod variables;

pub use call::Call;
pub use operator::{Kernel, Operator};
