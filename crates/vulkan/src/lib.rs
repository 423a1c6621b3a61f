//! Adapters, memory, pipelines, command recording and timelines over Vulkan 1.2: an implementation
//! of [`dml_gpu`]'s traits, which [`Vulkan`] names.
//!
//! No Vulkan type leaves this crate, and it knows neither tensors nor kernels: a kernel is SPIR-V
//! words with an entry point `main`, memory is a [`Segment`] with a 64-bit GPU address, arguments
//! are the bytes of push constants.
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
//! # Folders
//!
//! A folder imports only folders above it in this list, and no files import each other in a circle.
//!
//! | folder | content |
//! |---|---|
//! | `instance` | the loader, the one instance, the validation layer's messages |
//! | `adapter` | the installed adapters: features, capabilities, the queue family, heaps |
//! | `device` | an opened device: functions, its queue and clock, whether it is lost |
//! | `memory` | segments, and the choice of their memory types |
//! | `pipeline` | compilation, and the cache of compiled kernels on disk |
//! | `command` | [`Encoder`], which records all commands, and [`Recording`], a command buffer for many runs |
//! | `query` | timestamps, spans around commands |
//! | `submit` | [`Recorder`], which encodes and submits; the state of its submissions; its [`Timeline`] |
//! | `gpu.rs` | [`Gpu`], the entry point for the layer above |
//!
//! # Guarantees
//!
//! The guarantees that [`dml_gpu`] asks of an implementation. In addition:
//!
//! - [`Gpu`], [`Segment`], [`Pipeline`], [`Recording`] and [`Timeline`] are `Send + Sync`; a
//!   [`Recorder`] is `Send`.
//! - A few methods that the engine does not need belong to the types and not to the traits:
//!   [`Encoder::update`], [`Recorder::after`], [`Recorder::timestamp_ns`].
//!
//! # Not guaranteed
//!
//! - Hazards are not tracked. The caller records barriers and keeps segments alive; only the
//!   segments that are given to [`Gpu::record`](dml_gpu::Gpu::record) are kept.
//! - The addresses of a dispatch are not checked, nor is the SPIR-V (the validation layer does
//!   both). Such a mistake may break the whole process: the kernels of a software adapter write to
//!   its memory.
//!
//!   Addresses, SPIR-V and the lifetimes of segments are the caller's responsibility, and nothing
//!   else is. No type expresses them: an address is a number among a kernel's parameters.
//! - An opened device is never destroyed: the next [`Adapter::open`](dml_gpu::Adapter::open) reuses
//!   the driver's side of a closed one.
//!
//! # Environment
//!
//! | variable | effect |
//! |---|---|
//! | `TORCH_DML_VALIDATION=1` | loads the Khronos validation layer; see [`validation_messages`] |
//! | `TORCH_DML_CACHE_DIR` | the folder of compiled pipelines and of records about the adapter |
//! | `TORCH_DML_TIMEOUT_S` | seconds without progress that count as a lost device |
//! | `TORCH_DML_NO_MARKER=1` | never uses `VK_AMD_buffer_marker` |
//! | `TORCH_DML_QUIRKS=0` | uses features with known faults of drivers |
//! | `TORCH_DML_IMITATED_FAULTS` | imitates faults of drivers (tests) |
//! | `TORCH_DML_PROFILE` | hides features and lowers limits to those of one of [`profiles`] |

mod adapter;
mod command;
mod device;
mod error;
mod gpu;
mod imitated_faults;
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
