//! Compute pipelines: compilation of SPIR-V, and the cache of compiled pipelines on disk.

mod cache;
mod compiler;
mod compute;
mod executables;
mod layout;

pub use compute::Pipeline;

pub(crate) use compiler::Compiler;
