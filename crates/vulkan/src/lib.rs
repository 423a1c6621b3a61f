//! Adapters, memory, pipelines, command recording and timelines over Vulkan 1.2: an implementation of [`dml_gpu`]'s traits,
//! which [`Vulkan`] names.
//!
//! No Vulkan type leaves this crate, and nothing of tensors or kernels enters it: a kernel is
//! SPIR-V words with an entry point `main`, memory is a [`Segment`] with a 64-bit GPU address, an
//! argument is bytes of push constants.
//!
//! ```no_run
//! use dml_gpu::traits::*;
//! use dml_gpu::{Error, MemoryClass};
//!
//! fn main() -> Result<(), Error> {
//!     let gpu = dml_vulkan::adapters()?[0].open()?;
//!     let (there, back) = (gpu.allocate(64, MemoryClass::Device)?, gpu.allocate(64, MemoryClass::Readback)?);
//!     let mut recorder = gpu.recorder()?;
//!     recorder.update(&there, 0, &[7; 64])?;
//!     recorder.barrier();
//!     recorder.copy(&there, 0, &back, 0, 64)?;
//!     recorder.host_barrier();
//!     let ticket = recorder.submit()?;
//!     recorder.wait(ticket) // `back.host_ptr()` shows 64 sevens.
//! }
//! ```
//!
//! # Where things are
//!
//! Arrows between the folders point up in this list, and no files import each other in a circle.
//!
//! | folder | what is in it |
//! |---|---|
//! | `instance` | the loader, the one instance, the validation layer's messages |
//! | `adapter` | what is installed and what it can do: features, capabilities, the queue family, heaps |
//! | `device` | an opened device: functions, its queue and clock, whether it is lost |
//! | `memory` | segments, and which memory types they are made of |
//! | `pipeline` | compiling, and the cache of compiled kernels on disk |
//! | `command` | [`Encoder`], the one thing that records commands, and [`Recording`], a command buffer for many runs |
//! | `query` | timestamps, spans around commands |
//! | `submit` | [`Recorder`], which encodes and submits, what its submissions need, and its [`Timeline`] |
//! | `gpu.rs` | [`Gpu`], and what else opens all this to the layer above |
//!
//! # What is promised
//!
//! What [`dml_gpu`] says that an implementation promises. Besides:
//!
//! - [`Gpu`], [`Segment`], [`Pipeline`], [`Recording`] and [`Timeline`] are `Send + Sync`; a [`Recorder`] is `Send`.
//! - A few methods that the engine does not need are not the interface's, but the types' own: [`Encoder::update`],
//!   [`Recorder::after`], [`Recorder::timestamp_ns`].
//!
//! # What is not promised
//!
//! - Hazards are not tracked: barriers are the caller's, and so are the lifetimes of segments, of which only those given
//!   to [`Gpu::record`](dml_gpu::Gpu::record) are kept.
//! - A dispatch's addresses are not checked, nor is the SPIR-V (the validation layer does both). What such a mistake
//!   breaks may be the whole process: a software adapter's kernels write to its memory.
//!
//!   These three, addresses, SPIR-V and the lifetimes of segments, are the caller's promises, and nothing else is. No type
//!   carries them: an address is a number among a kernel's parameters.
//! - A device that was opened is never destroyed: the driver's side of a closed one waits for the next
//!   [`Adapter::open`](dml_gpu::Adapter::open).
//!
//! # Environment
//!
//! | variable | effect |
//! |---|---|
//! | `TORCH_DML_VALIDATION=1` | loads the Khronos validation layer, which must be installed; see [`validation_messages`] |
//! | `TORCH_DML_CACHE_DIR` | where compiled pipelines and what was found out about the adapter are kept |
//! | `TORCH_DML_TIMEOUT_S` | seconds without progress that count as a lost device |
//! | `TORCH_DML_NO_MARKER=1` | never uses `VK_AMD_buffer_marker` |
//! | `TORCH_DML_PROFILE` | hides features and lowers limits to those of another adapter, one of [`profiles`] |

mod adapter;
mod command;
mod device;
mod error;
mod gpu;
mod instance;
mod memory;
mod pipeline;
mod query;
mod submit;
mod vulkan;

pub use adapter::{Adapter, adapters, profiles, unsupported_adapters};
pub use command::{Encoder, Recording};
pub use gpu::Gpu;
pub use instance::{validation_errors, validation_messages};
pub use memory::Segment;
pub use pipeline::Pipeline;
pub use query::TimestampId;
pub use submit::{Recorder, Timeline};
pub use vulkan::Vulkan;
