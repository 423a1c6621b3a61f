//! Emits a kernel as a SPIR-V 1.5 module for Vulkan 1.2.
//!
//! `code` is the module under construction, which knows no kernel: `types` has its types and
//! constants, `arithmetic`, `group_operations`, `halves` (conversions between f32 and f16) and
//! `synchronization` its instructions, `requirements` its capabilities. `emitter` walks a kernel
//! and appends to it: `entry` what the kernel declares, `statements`, `values`, `memory`, `reload`
//! for parameters in loops, `late_params` for those of branches, and `matrix` for matrix registers.

mod arithmetic;
mod branch_params;
mod code;
mod emitter;
mod entry;
mod group_operations;
mod halves;
mod late_constants;
mod late_params;
mod matrix;
mod memory;
mod module;
mod reload;
mod requirements;
mod statements;
mod synchronization;
mod type_key;
mod types;
mod values;

pub use module::{MAX_PUSH_BYTES, Module, Needs};
