//! Kernels by key, and the pool that compiles them.

mod append_only;
pub(crate) mod cache;
pub(crate) mod compiler;
pub mod interface;
pub(crate) mod key;
pub(crate) mod launch;
pub(crate) mod matrix_element;
mod once_job;
pub(crate) mod parts;
pub(crate) mod pointwise;
#[cfg(debug_assertions)]
mod written;
