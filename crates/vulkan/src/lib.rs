//! Adapters, memory, pipelines, command recording and timelines over Vulkan 1.2.
//!
//! No Vulkan type leaves this crate, and nothing of tensors or kernels enters it: a kernel is
//! SPIR-V words with an entry point `main`, memory is a [`Segment`] with a 64-bit GPU address, an
//! argument is bytes of push constants.
//!
//! It is a thin layer: one Vulkan call a call wherever that is possible, no queue, lock or allocation on the way of a
//! dispatch, and no decision that needs to know what the bytes mean. What costs a choice (batches, hazards,
//! sub-allocation, caching of kernels) is the layer above's.
//!
//! ```no_run
//! use dml_vulkan::{Error, MemoryClass};
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
//! | `kept` | files on disk of one adapter and driver, and what of them is trusted |
//! | `memory` | segments, and which memory types they are made of |
//! | `pipeline` | compiling, and the cache of compiled kernels on disk |
//! | `command` | [`Encoder`], the one thing that records commands, and [`Recording`], a command buffer for many runs |
//! | `query` | timestamps, spans around commands, the device's clock beside the host's |
//! | `submit` | [`Recorder`], which encodes and submits, what its submissions need, and its [`Timeline`] |
//! | `gpu.rs` | [`Gpu`], which opens all this to the layer above |
//!
//! # What is promised
//!
//! - Every run-time failure is an [`Error`]; nothing panics. A call that fails leaves its object usable, unless the
//!   device is lost; where recorded commands are discarded, the call says so.
//! - What would be undefined in Vulkan and can be told from the arguments in a few nanoseconds is checked and is
//!   [`Error::Invalid`]: ranges of copies, sizes of push constants, counts of workgroups, objects of another device,
//!   tickets.
//! - Calls of one [`Recorder`] reach the GPU in the order in which they were made. Two commands that
//!   touch the same bytes need [`Recorder::barrier`] between them, also across submits, unless the
//!   host waited between them. A [`Recording`] begins with a barrier and ends with none.
//! - After [`Recorder::wait`] or [`Timeline::wait`] returned for a ticket, all work of that ticket
//!   is done. What it wrote to host-visible memory is visible to the host if
//!   [`Recorder::host_barrier`] was called between the write and the submit. All mapped memory is coherent.
//! - Host writes to mapped memory made before [`Recorder::submit`] are visible to that submit.
//! - Pipelines and recordings live until the GPU is done with them, whoever drops them.
//! - Recording a command into an open command buffer takes no lock, and allocates at most to grow a list.
//! - A wait never hangs for ever: `TORCH_DML_TIMEOUT_S` seconds (300 if unset) without progress mean
//!   [`Error::DeviceLost`]. After a loss every call on that [`Gpu`] returns it, and other devices work on.
//! - [`Gpu`], [`Segment`], [`Pipeline`], [`Recording`] and [`Timeline`] are `Send + Sync`; a [`Recorder`] is `Send`.
//!
//! # What is not promised
//!
//! - Hazards are not tracked: barriers are the caller's, and so are the lifetimes of segments, of which only those given
//!   to [`Gpu::record`] are kept.
//! - A dispatch's addresses are not checked, nor is the SPIR-V (the validation layer does both). What such a mistake
//!   breaks may be the whole process: a software adapter's kernels write to its memory.
//!
//!   These three, addresses, SPIR-V and the lifetimes of segments, are the caller's promises, and nothing else is. No type
//!   carries them: an address is a number among a kernel's parameters. The engine keeps them for all crates above it.
//!   It names its memory by ranges and frees it behind the work that uses it, and its SPIR-V is the emitter's.
//! - Memory is not cleared.
//! - Nothing limits what a process allocates; a driver may page before it reports exhausted memory.
//! - A device that was opened is never destroyed: the driver's side of a closed one waits for the next
//!   [`Adapter::open`].
//! - Use after `fork` in the child: drivers do not support it.
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
mod kept;
mod memory;
mod pipeline;
mod query;
mod submit;
mod ticket;

pub use adapter::{
    Adapter, AdapterInfo, AdapterKind, Capabilities, FloatControls, FloatModes, MatrixElement, MatrixShape, adapters,
    profiles, unsupported_adapters,
};
pub use command::{Encoder, Recording};
pub use error::Error;
pub use gpu::{Gpu, OpenOptions};
pub use instance::{ValidationMessage, validation_errors, validation_messages};
pub use kept::KeptFile;
pub use memory::{MemoryClass, Segment};
pub use pipeline::{Pipeline, PipelineOptions};
pub use query::{Clocks, Span, TimestampId, unix_now};
pub use submit::{Recorder, Timeline, Waited};
pub use ticket::Ticket;
