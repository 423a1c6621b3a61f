//! The store of kernels, the pool that compiles them, and what launches hand over.

mod append_only;
pub(crate) mod argument_block;
pub(crate) mod compiler;
pub(crate) mod costs;
mod disassembly;
pub(crate) mod id;
pub mod interface;
pub(crate) mod kernel;
pub(crate) mod key;
pub(crate) mod launch;
pub(crate) mod matrix_element;
mod once_job;
pub(crate) mod parts;
pub(crate) mod pointwise;
pub(crate) mod refusals;
pub(crate) mod requirements;
mod statistics;
pub(crate) mod store;
