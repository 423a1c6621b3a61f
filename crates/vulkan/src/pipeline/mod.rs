//! Compute pipelines: compiling SPIR-V, and keeping what was compiled on disk.

mod cache;
mod compiler;
mod compute;
mod layout;

pub use compute::Pipeline;

pub(crate) use compiler::Compiler;
