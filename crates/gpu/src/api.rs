//! A graphics API as traits that name each other: an [`Api`] says which types belong together, an
//! [`Adapter`] opens a [`Gpu`], [`Commands`] are recorded, and a [`Recorder`] submits them.

use std::ffi::OsString;
use std::fmt::Debug;
use std::sync::Arc;

use crate::adapter::AdapterInfo;
use crate::disk_cache::CacheFile;
use crate::error::Error;
use crate::memory::{MemoryClass, Segment};
use crate::options::{OpenOptions, PipelineOptions};
use crate::query::{Clocks, Span};
use crate::statistics::Executable;
use crate::ticket::Ticket;
use crate::timeline::Timeline;
use crate::validation::ValidationMessage;

/// A graphics API, given by the types that implement its parts. The engine names one API in one
/// place and calls it through these traits. The compiler knows every called function, so the traits
/// cost nothing at run time.
pub trait Api: Copy + Debug + Send + Sync + 'static {
    /// The name that people use.
    const NAME: &'static str;

    /// A kernel as a driver takes it: words of SPIR-V, bytes of DXIL.
    type Code: ?Sized;
    /// See [`Adapter`].
    type Adapter: Adapter<Api = Self>;
    /// See [`Gpu`].
    type Gpu: Gpu<Api = Self>;
    /// See [`Segment`].
    type Segment: Segment;
    /// A compiled kernel ([`Gpu::compile`]). A clone is another handle of the same kernel. The
    /// kernel lives until the GPU is done with it, even if all handles are dropped before.
    type Pipeline: Clone + Debug + Send + Sync + 'static;
    /// The encoder that [`Gpu::record`] records with.
    type Encoder: Commands<Api = Self>;
    /// Commands that [`Recorder::execute`] runs any number of times; made by [`Gpu::record`]. A
    /// clone is another handle of the same commands, which live until the GPU is done with them,
    /// even if all handles are dropped before.
    type Recording: Clone + Debug + Send + Sync + 'static;
    /// See [`Recorder`].
    type Recorder: Recorder<Api = Self>;
    /// See [`Timeline`].
    type Timeline: Timeline;
    /// A recorded timestamp ([`Recorder::timestamp`]). Its query is reused when the last clone is
    /// dropped.
    type TimestampId: Clone + Debug + Send + Sync + 'static;

    /// The usable adapters, in the order of
    /// [`AdapterInfo::listing_order`](crate::AdapterInfo::listing_order). The list is made once per
    /// process. A GPU with two drivers is listed twice.
    ///
    /// # Errors
    /// [`Error::NoLoader`], [`Error::NoAdapter`], [`Error::NoValidation`], or the driver's error;
    /// [`Error::Invalid`] for an unknown `TORCH_DML_PROFILE`.
    fn adapters() -> Result<&'static [Self::Adapter], Error>;

    /// The adapters that [`adapters`](Self::adapters) leaves out: name and reason.
    fn unsupported_adapters() -> Vec<(String, String)>;

    /// Sets the command that starts a child process, which calls
    /// [`answer_child_query`](Self::answer_child_query) with one more argument, the question, and
    /// ends. To be called before the first use. Some drivers end the process that asks a question;
    /// without the command, what it is about is not used.
    fn set_child_command(command: Vec<OsString>) {
        let _ = command;
    }

    /// In such a child process: writes the answer to the standard output.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a question that is none; as [`adapters`](Self::adapters).
    fn answer_child_query(question: &str) -> Result<(), Error> {
        Err(Error::Invalid { call: "Api::answer_child_query", what: format!("{question} is no question") })
    }

    /// The messages of the API's validation layer in this process so far, by kind. Always empty
    /// unless `TORCH_DML_VALIDATION=1` was set before the first use.
    fn validation_messages() -> Vec<ValidationMessage>;
}

/// One GPU as one driver lists it.
pub trait Adapter: Debug + Send + Sync + 'static {
    /// The API of the adapter.
    type Api: Api<Adapter = Self>;

    /// The description of the adapter.
    fn info(&self) -> &AdapterInfo;

    /// Opens a device. Devices that are open at the same time are independent, each with its own
    /// queue. The first device takes 60 to 80 ms on NVIDIA.
    ///
    /// # Errors
    /// The driver's error; [`Error::DeviceLost`] if the GPU is gone.
    fn open(&self) -> Result<<Self::Api as Api>::Gpu, Error> {
        self.open_with(&OpenOptions::default())
    }

    /// Opens a device with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_with(&self, options: &OpenOptions) -> Result<<Self::Api as Api>::Gpu, Error>;
}

/// An opened device: one queue, memory, pipelines.
/// A clone is another handle of the same device. The device closes when the last handle, segment,
/// pipeline, recording, recorder and timeline are gone.
pub trait Gpu: Clone + Debug + Send + Sync + 'static {
    /// The API of the device.
    type Api: Api<Gpu = Self>;

    /// The adapter that this device runs on.
    fn info(&self) -> &AdapterInfo;

    /// The number of bytes that this process can expect to allocate now: the driver's estimate, or
    /// the total if the driver gives none. Takes about 15 µs.
    fn memory_free(&self) -> u64;

    /// Bytes of the largest segment that is worth trying to allocate: more than the driver
    /// guarantees ([`max_allocation`](crate::Capabilities::max_allocation)) for drivers that are
    /// known to give more.
    fn largest_segment(&self) -> u64;

    /// Allocates a segment of `bytes` bytes. Slow (0.2 ms for 2 MiB, 38 ms for 1 GiB on NVIDIA), so
    /// the layer above sub-allocates. The memory is not cleared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or the driver's error. A size of 0 is
    /// [`Error::Invalid`], a size above [`largest_segment`](Self::largest_segment) is
    /// [`Error::OutOfMemory`], and more segments than
    /// [`max_allocations`](crate::Capabilities::max_allocations) are [`Error::TooManyAllocations`].
    fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<<Self::Api as Api>::Segment, Error>;

    /// As [`compile_with`](Self::compile_with), with default options.
    ///
    /// # Errors
    /// As [`compile_with`](Self::compile_with).
    fn compile(
        &self,
        name: &str,
        code: &<Self::Api as Api>::Code,
        push_bytes: u32,
    ) -> Result<<Self::Api as Api>::Pipeline, Error> {
        self.compile_with(name, code, push_bytes, &PipelineOptions::default())
    }

    /// Compiles a compute kernel whose entry point is `main`, with parameters in the bytes `[0,
    /// push_bytes)`. May be called from several threads at a time. Takes milliseconds, or about 40
    /// µs if the device's cache on disk contains the kernel. `name` is used in messages.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more parameters than the adapter allows, [`Error::Unsupported`] for a
    /// subgroup size that the adapter does not have, [`Error::DeviceLost`], or the driver's error.
    fn compile_with(
        &self,
        name: &str,
        code: &<Self::Api as Api>::Code,
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<<Self::Api as Api>::Pipeline, Error>;

    /// What the driver's compiler reports of a pipeline, if `TORCH_DML_PIPELINE_STATISTICS` or
    /// `TORCH_DML_PIPELINE_DISASSEMBLY` is set. Empty if the driver reports nothing.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or the driver's error.
    fn executables(&self, pipeline: &<Self::Api as Api>::Pipeline) -> Result<Vec<Executable>, Error> {
        let _ = pipeline;
        Ok(Vec::new())
    }

    /// Writes the compiled pipelines to disk if there are new ones, merged with the pipelines that
    /// another process wrote meanwhile. A directory that cannot be written is not an error: the
    /// second run then starts as slowly as the first, and the log says so.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or the driver's error.
    fn save_pipeline_cache(&self) -> Result<(), Error>;

    /// The file of records about this adapter and driver, in the folder of the pipeline cache. A
    /// file of another `version` is not read. `None` if there is no such folder.
    fn records_file(&self, version: u32) -> Option<CacheFile>;

    /// A new command stream of the queue. One is enough.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or the driver's error.
    fn recorder(&self) -> Result<<Self::Api as Api>::Recorder, Error>;

    /// Makes a recording of the commands that `body` records. They do not run now:
    /// [`Recorder::execute`] runs them. The recording begins with a barrier, so that each run comes
    /// after all earlier commands. Later commands that depend on a run need a barrier of their own.
    /// `body` gets `segments`, which live as long as the recording and its runs; the caller must
    /// keep all other segments alive.
    ///
    /// # Errors
    /// The error of `body`; [`Error::DeviceLost`], [`Error::OutOfMemory`], or the driver's error.
    fn record<E: From<Error>>(
        &self,
        segments: impl Into<Arc<[<Self::Api as Api>::Segment]>>,
        body: impl FnOnce(&mut <Self::Api as Api>::Encoder, &[<Self::Api as Api>::Segment]) -> Result<(), E>,
    ) -> Result<<Self::Api as Api>::Recording, E>;

    /// Whether the device was lost.
    fn is_lost(&self) -> bool;

    /// For tests: from now on every call returns [`Error::DeviceLost`].
    fn simulate_loss(&self);
}

/// Records commands. Commands start in the order of the calls and may overlap unless a
/// [`barrier`](Self::barrier) separates them.
pub trait Commands: Debug {
    /// The API of the commands.
    type Api: Api;

    /// Runs a kernel with parameters `push` over `groups` workgroups. If a dimension has no
    /// workgroups, nothing runs.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the length of `push` differs from the kernel's, if there are more
    /// groups than [`max_groups`](crate::Capabilities::max_groups), or if the pipeline belongs to
    /// another device; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn dispatch(&mut self, pipeline: &<Self::Api as Api>::Pipeline, push: &[u8], groups: [u32; 3])
    -> Result<(), Error>;

    /// As [`dispatch`](Self::dispatch), with workgroup indices that begin at `base`. The number of
    /// workgroups that the kernel sees is `groups`.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), where `base` counts as workgroups.
    fn dispatch_from(
        &mut self,
        pipeline: &<Self::Api as Api>::Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error>;

    /// Makes the writes of earlier commands visible to later ones, and orders later writes after
    /// earlier reads. Costs 2 µs of GPU time. Two barriers in a row are one, and a barrier without
    /// later commands is none. A [`Recorder`]'s barrier also holds across submissions.
    fn barrier(&mut self);

    /// Copies `bytes` bytes. Large copies within a device's memory are three times faster as a
    /// kernel.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside its segment, for overlapping ranges, and for segments
    /// of another device; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn copy(
        &mut self,
        src: &<Self::Api as Api>::Segment,
        src_offset: u64,
        dst: &<Self::Api as Api>::Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error>;
}

/// The command stream of a queue: records commands and submits them in batches. Dropping a recorder
/// discards commands that were not submitted and waits for the submitted ones.
pub trait Recorder: Commands + Sized + Send + 'static {
    /// Makes writes to mapped memory by the commands up to the next submit visible to the host once
    /// that submit is complete. Costs about 3.5 µs of GPU time per submit.
    fn host_barrier(&mut self);

    /// Runs a recording after all commands recorded before. Costs almost no host time.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a recording of another device; [`Error::DeviceLost`]; the driver's
    /// error, which discards the commands recorded since the last submit.
    fn execute(&mut self, recording: &<Self::Api as Api>::Recording) -> Result<(), Error>;

    /// Records the time at which all earlier commands are done. A pair costs 1.8 µs of GPU time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn timestamp(&mut self) -> Result<<Self::Api as Api>::TimestampId, Error>;

    /// Nanoseconds from one timestamp to another, negative if `to` came first; `None` while their
    /// submissions are not complete, and forever if one was discarded. The result is also right if
    /// the device's clock wrapped around between them, which some clocks do every hour.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timestamp of another recorder; [`Error::DeviceLost`].
    fn elapsed_ns(
        &self,
        from: &<Self::Api as Api>::TimestampId,
        to: &<Self::Api as Api>::TimestampId,
    ) -> Result<Option<f64>, Error>;

    /// Runs `command`, which records one command, and measures when that command begins and ends,
    /// after its barrier if it needs one. [`take_spans`](Self::take_spans) gives the times under
    /// the name `id`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the queue has no timestamps; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`]; the error of `command`.
    fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error>;

    /// Moves the known spans into `out`. Spans of unfinished work follow in later calls. Spans that
    /// the driver lost are left out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or the driver's error.
    fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error>;

    /// Reads the device's clock and the host's. If the driver cannot read the device's clock, this
    /// submits a single timestamp instead, and the queue should be idle.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the queue has no timestamps; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn clocks(&mut self) -> Result<Clocks, Error>;

    /// Commands recorded since the last submit, barriers not counted.
    fn recorded(&self) -> usize;

    /// Submits the recorded commands. If there are none, returns the last ticket.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], [`Error::OutOfMemory`], or the driver's error; the recorded commands
    /// are then discarded.
    fn submit(&mut self) -> Result<Ticket, Error>;

    /// As [`submit`](Self::submit), but always with the next ticket, even if nothing was recorded
    /// or the driver refuses the commands: for a caller that has already promised the ticket.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). The ticket completes also then, unless the error is
    /// [`Error::DeviceLost`].
    fn submit_next(&mut self) -> Result<Ticket, Error>;

    /// The last ticket that [`submit`](Self::submit) returned.
    fn last_ticket(&self) -> Ticket;

    /// Returns when `ticket` is complete; see [`Timeline::wait`].
    ///
    /// # Errors
    /// As [`Timeline::wait`].
    fn wait(&mut self, ticket: Ticket) -> Result<(), Error>;

    /// Submits the recorded commands and waits until the GPU is done with everything. Afterwards
    /// the driver also knows that no segment is in use, whichever way completion is reported.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`wait`](Self::wait).
    fn wait_idle(&mut self) -> Result<(), Error>;

    /// The progress of this recorder, for other threads.
    fn timeline(&self) -> &<Self::Api as Api>::Timeline;
}
