//! Emits a kernel as a SPIR-V 1.5 module for Vulkan 1.2: `emitter`, and `matrix` for the statements on matrix registers.

mod emitter;
mod matrix;

pub use emitter::{MAX_PUSH_BYTES, Module, Needs};
