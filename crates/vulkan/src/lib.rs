//! Adapters, memory, pipelines, command recording and timelines over Vulkan 1.2.
//!
//! No Vulkan type leaves this crate, and nothing of tensors or kernels enters it: a kernel is
//! SPIR-V words with an entry point `main`, memory is a [`Segment`] with a 64-bit GPU address, an
//! argument is bytes of push constants.
//!
//! # What is promised
//!
//! - Every run-time failure is an [`Error`]; nothing panics.
//! - Calls of one [`Recorder`] reach the GPU in the order in which they were made. Two commands that
//!   touch the same bytes need [`Recorder::barrier`] between them, also across submits, unless the
//!   host waited between them.
//! - After [`Recorder::wait`] or [`Timeline::wait`] returned for a ticket, all work of that ticket
//!   is done. What it wrote to host-visible memory is visible to the host if
//!   [`Recorder::host_barrier`] was called between the write and the submit. All mapped memory is coherent.
//! - Host writes to mapped memory made before [`Recorder::submit`] are visible to that submit.
//! - A wait never hangs for ever: `TORCH_DML_TIMEOUT_S` seconds (300 if unset) without progress mean
//!   [`Error::DeviceLost`]. After a loss every call on that [`Gpu`] returns it, and other devices work on.
//! - [`Gpu`], [`Segment`], [`Pipeline`] and [`Timeline`] are `Send + Sync`; a [`Recorder`] is `Send`.
//!
//! # What is not promised
//!
//! - Hazards are not tracked: barriers and memory lifetimes are the caller's.
//! - A dispatch's addresses are not checked, nor is the SPIR-V (the validation layer does both).
//! - Nothing limits what a process allocates; a driver may page before it reports exhausted memory.
//! - Use after `fork` in the child: drivers do not support it.
//!
//! # Environment
//!
//! | variable | effect |
//! |---|---|
//! | `TORCH_DML_VALIDATION=1` | loads the Khronos validation layer; see [`validation_errors`] |
//! | `TORCH_DML_CACHE_DIR` | where compiled pipelines are kept |
//! | `TORCH_DML_TIMEOUT_S` | seconds without progress that count as a lost device |
//! | `TORCH_DML_NO_MARKER=1` | never uses `VK_AMD_buffer_marker` |

mod adapter;
mod capabilities;
mod clock;
mod debug;
mod error;
mod extensions;
mod gpu;
mod instance;
mod memory;
mod pipeline;
mod pipeline_cache;
mod recorder;
mod recording;
mod span;
mod timeline;
mod timestamp;

pub use adapter::{Adapter, AdapterInfo, AdapterKind, adapters, unsupported_adapters};
pub use capabilities::{Capabilities, FloatControls, FloatModes, MatrixElement, MatrixShape};
pub use clock::{Clocks, unix_now};
pub use debug::validation_errors;
pub use error::Error;
pub use gpu::{Gpu, OpenOptions};
pub use memory::{MemoryClass, Segment};
pub use pipeline::{Pipeline, PipelineOptions};
pub use recorder::Recorder;
pub use recording::{Recordable, Recording};
pub use span::Span;
pub use timeline::{Ticket, Timeline};
pub use timestamp::TimestampId;
