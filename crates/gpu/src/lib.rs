//! What the engine asks of a graphics API: traits, and the plain data that they speak of.
//!
//! A graphics API is a crate (`dml-vulkan`, `dml-d3d12`) with a type that implements [`Api`], which names the types of its
//! parts. Nothing of tensors enters it: memory is a [`Segment`] with a 64-bit address, an argument is bytes of parameters, and a
//! kernel is code in the form that its driver takes ([`Api::Code`]). The engine is not generic over it: it names one in one
//! place (`crates/engine/src/backend.rs`), so that every call is a call of a known function.
//!
//! It is a thin layer: one call of the driver a call wherever that is possible, no queue, lock or allocation on the way of a
//! dispatch, and no decision that needs to know what the bytes mean. What costs a choice (batches, hazards,
//! sub-allocation, caching of kernels) is the layer above's.
//!
//! # Where things are
//!
//! | file | what is in it |
//! |---|---|
//! | `error.rs`, `ticket.rs`, `validation.rs` | the error type; what a submission is called; what a validation layer reports |
//! | `adapter/` | what is known of an adapter: features, limits, shapes of matrices |
//! | `kept/` | files on disk of one adapter and driver, and what of them is trusted |
//! | `query/` | the device's clock beside the host's, spans |
//! | `options.rs`, `memory.rs`, `timeline.rs` | how a device is opened; [`Segment`], and what memory is for; [`Timeline`] |
//! | `api.rs` | the traits that name each other: [`Api`], [`Adapter`], [`Gpu`], [`Commands`], [`Recorder`] |
//!
//! # What an implementation promises
//!
//! - Every run-time failure is an [`Error`]; nothing panics. A call that fails leaves its object usable, unless the
//!   device is lost; where recorded commands are discarded, the call says so.
//! - What the API leaves undefined and can be told from the arguments in a few nanoseconds is checked and is
//!   [`Error::Invalid`]: ranges of copies, sizes of parameters, counts of workgroups, objects of another device,
//!   tickets.
//! - Calls of one [`Recorder`] reach the GPU in the order in which they were made. Two commands that
//!   touch the same bytes need [`Commands::barrier`] between them, also across submits, unless the
//!   host waited between them. A recording begins with a barrier and ends with none.
//! - After [`Recorder::wait`] or [`Timeline::wait`] returned for a ticket, all work of that ticket
//!   is done. What it wrote to host-visible memory is visible to the host if
//!   [`Recorder::host_barrier`] was called between the write and the submit. All mapped memory is coherent.
//! - Host writes to mapped memory made before [`Recorder::submit`] are visible to that submit.
//! - Pipelines and recordings live until the GPU is done with them, whoever drops them.
//! - Recording a command into an open command buffer takes no lock, and allocates at most to grow a list.
//! - A wait never hangs for ever: `TORCH_DML_TIMEOUT_S` seconds (300 if unset) without progress mean
//!   [`Error::DeviceLost`]. After a loss every call on that [`Gpu`] returns it, and other devices work on.
//!
//! # What it does not promise
//!
//! - Hazards are not tracked: barriers are the caller's, and so are the lifetimes of segments, of which only those given
//!   to [`Gpu::record`] are kept.
//! - A dispatch's addresses are not checked, nor is the kernel's code.
//!
//!   These three, addresses, code and the lifetimes of segments, are the caller's promises, and nothing else is. No type
//!   carries them: an address is a number among a kernel's parameters. The engine keeps them for all crates above it.
//!   It names its memory by ranges and frees it behind the work that uses it, and its code is the emitter's.
//! - Memory is not cleared.
//! - Nothing limits what a process allocates; a driver may page before it reports exhausted memory.
//! - Use after `fork` in the child: drivers do not support it.

mod adapter;
mod api;
mod disk_cache;
mod error;
mod memory;
mod options;
mod query;
mod ticket;
mod timeline;
mod validation;

pub use adapter::{
    AdapterInfo, AdapterKind, Capabilities, FloatControls, FloatModes, MatrixElement, MatrixShape, vendor_name,
};
pub use api::{Adapter, Api, Commands, Gpu, Recorder};
pub use disk_cache::{CacheFile, FileIdentity, FileKind, checksum, folder};
pub use error::Error;
pub use memory::{MemoryClass, Segment};
pub use options::{OpenOptions, PipelineOptions};
pub use query::{Clocks, Span, ticks_between, unix_now};
pub use ticket::Ticket;
pub use timeline::{Progress, Timeline, Waited, check_submitted, poll_until};
pub use validation::ValidationMessage;

/// The traits by no name, for whoever has types of the same names.
pub mod traits {
    pub use crate::{Adapter as _, Api as _, Commands as _, Gpu as _, Recorder as _, Segment as _, Timeline as _};
}
