//! Emits a kernel as a SPIR-V 1.5 module for Vulkan 1.2: `emitter`, `halves` for conversions
//! between f32 and f16, and `matrix` for the statements on matrix registers.

mod emitter;
mod halves;
mod matrix;

pub use emitter::{MAX_PUSH_BYTES, Module, Needs};
