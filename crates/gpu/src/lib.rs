//! The interface between the engine and a graphics API: traits, and plain data.
//!
//! A graphics API is a crate (`dml-vulkan`, `dml-d3d12`) with a type that implements [`Api`] and
//! names the types of its parts. The interface knows no tensors: memory is a [`Segment`] with a
//! 64-bit address, arguments are the bytes of a parameter block, and a kernel is code in the form
//! that its driver takes ([`Api::Code`]). The engine is not generic over the API. It names one API
//! in one place (`crates/engine/src/backend.rs`), so that every call is static.
//!
//! The layer is thin: one call of the driver for a call of the interface wherever that is possible,
//! no queue, lock or allocation on the path of a dispatch, and no decision that depends on the
//! meaning of the bytes. Policies (batches, hazards, sub-allocation, caching of kernels) belong to
//! the layer above.
//!
//! # Files
//!
//! | file | content |
//! |---|---|
//! | `error.rs`, `ticket.rs`, `validation.rs` | the error type; tickets of submissions; messages of a validation layer |
//! | `adapter/` | the description of an adapter: features, limits, shapes of matrices |
//! | `disk_cache/` | files on disk for one adapter and driver |
//! | `query/` | the device's clock beside the host's; spans |
//! | `options.rs`, `memory.rs`, `timeline.rs` | options of devices and pipelines; [`Segment`] and classes of memory; [`Timeline`] |
//! | `api.rs` | the traits that name each other: [`Api`], [`Adapter`], [`Gpu`], [`Commands`], [`Recorder`] |
//!
//! # Guarantees of an implementation
//!
//! - Every run-time failure is an [`Error`]; nothing panics. A failed call leaves its object
//!   usable, unless the device is lost. A call that discards recorded commands documents it.
//! - Undefined behaviour of the API that a few nanoseconds can detect from the arguments is
//!   [`Error::Invalid`]: ranges of copies, sizes of parameters, counts of workgroups, objects of
//!   another device, tickets.
//! - Calls of one [`Recorder`] reach the GPU in the order of the calls. Two commands that access
//!   the same bytes need [`Commands::barrier`] between them, also across submits, unless the host
//!   waited between them. A recording begins with a barrier and ends without one.
//! - After [`Recorder::wait`] or [`Timeline::wait`] has returned for a ticket, all work of that
//!   ticket is done. Its writes to host-visible memory are visible to the host if
//!   [`Recorder::host_barrier`] was called between the write and the submit. All mapped memory is
//!   coherent.
//! - Host writes to mapped memory before [`Recorder::submit`] are visible to that submit.
//! - Pipelines and recordings live until the GPU is done with them, even if all handles are dropped
//!   before.
//! - Recording a command into an open command buffer takes no lock, and allocates at most to grow a
//!   list.
//! - A wait ends: `TORCH_DML_TIMEOUT_S` seconds (300 if unset) without progress are
//!   [`Error::DeviceLost`]. After a loss every call on that [`Gpu`] returns that error, and other
//!   devices work on.
//!
//! # Not guaranteed
//!
//! - Hazards are not tracked. The caller records barriers and keeps segments alive; only the
//!   segments that are given to [`Gpu::record`] are kept.
//! - The addresses of a dispatch are not checked, nor is the code of a kernel.
//!
//!   Addresses, code and the lifetimes of segments are the caller's responsibility, and nothing
//!   else is. No type expresses them: an address is a number among a kernel's parameters. The
//!   engine takes this responsibility for all crates above it. It names memory by ranges, frees
//!   memory after the work that uses it, and its emitter writes all code.
//! - Memory is not cleared.
//! - Nothing limits the memory of a process; a driver may page before it reports exhausted memory.
//! - Use in a child process after `fork`: drivers do not support it.

mod adapter;
mod api;
mod disk_cache;
mod error;
mod memory;
mod options;
mod query;
mod statistics;
mod ticket;
mod timeline;
mod validation;

pub use adapter::{
    AdapterInfo, AdapterKind, Capabilities, FloatControls, FloatModes, MatrixElement, MatrixShape, RegisterFile,
    vendor_name,
};
pub use api::{Adapter, Api, Commands, Gpu, Recorder};
pub use disk_cache::{CacheFile, FileIdentity, FileKind, Journal, checksum, folder};
pub use error::Error;
pub use memory::{MemoryClass, Segment};
pub use options::{OpenOptions, PipelineOptions};
pub use query::{Clocks, Span, ticks_between, unix_now};
pub use statistics::Executable;
pub use ticket::Ticket;
pub use timeline::{Progress, Timeline, Waited, check_submitted, poll_until};
pub use validation::ValidationMessage;

/// The traits without names, for code that has types of the same names.
pub mod traits {
    pub use crate::{Adapter as _, Api as _, Commands as _, Gpu as _, Recorder as _, Segment as _, Timeline as _};
}
