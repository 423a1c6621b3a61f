//! A graphics API as traits that name each other: [`Api`] says which types belong together, [`Adapter`] is opened, [`Gpu`] is
//! open, [`Commands`] are recorded, and a [`Recorder`] submits them.

use std::fmt::Debug;
use std::sync::Arc;

use crate::adapter::AdapterInfo;
use crate::disk_cache::CacheFile;
use crate::error::Error;
use crate::memory::{MemoryClass, Segment};
use crate::options::{OpenOptions, PipelineOptions};
use crate::query::{Clocks, Span};
use crate::ticket::Ticket;
use crate::timeline::Timeline;
use crate::validation::ValidationMessage;

/// A graphics API, by the types that implement its parts. The engine names one, once, and calls all of it through these
/// traits: the compiler knows every function that is called, so a trait costs nothing.
pub trait Api: Copy + Debug + Send + Sync + 'static {
    /// What people call it.
    const NAME: &'static str;

    /// A kernel as a driver takes it: words of SPIR-V, bytes of DXIL.
    type Code: ?Sized;
    /// See [`Adapter`].
    type Adapter: Adapter<Api = Self>;
    /// See [`Gpu`].
    type Gpu: Gpu<Api = Self>;
    /// See [`Segment`].
    type Segment: Segment;
    /// A compiled kernel ([`Gpu::compile`]). A clone is another handle of the same kernel, which lives until the GPU is done
    /// with it, whoever drops it.
    type Pipeline: Clone + Debug + Send + Sync + 'static;
    /// What [`Gpu::record`] records with.
    type Encoder: Commands<Api = Self>;
    /// Commands that [`Recorder::execute`] runs as often as wanted; made by [`Gpu::record`]. A clone is another handle of the
    /// same commands, which live until the GPU is done with them, whoever drops them.
    type Recording: Clone + Debug + Send + Sync + 'static;
    /// See [`Recorder`].
    type Recorder: Recorder<Api = Self>;
    /// See [`Timeline`].
    type Timeline: Timeline;
    /// A timestamp that was recorded ([`Recorder::timestamp`]). Its place is used again when the last clone is dropped.
    type TimestampId: Clone + Debug + Send + Sync + 'static;

    /// The usable adapters, in the order of [`AdapterInfo::listing_order`](crate::AdapterInfo::listing_order). They are found once a process. A GPU that two
    /// drivers list is listed twice.
    ///
    /// # Errors
    /// [`Error::NoLoader`], [`Error::NoAdapter`], [`Error::NoValidation`], or what the driver said; [`Error::Invalid`] for a
    /// `TORCH_DML_PROFILE` that there is not.
    fn adapters() -> Result<&'static [Self::Adapter], Error>;

    /// The adapters that are left out of [`adapters`](Self::adapters): name, and why.
    fn unsupported_adapters() -> Vec<(String, String)>;

    /// What the API's validation layer reported in this process so far, by kind. Always empty unless `TORCH_DML_VALIDATION=1`
    /// was set before the first use.
    fn validation_messages() -> Vec<ValidationMessage>;
}

/// One GPU as one driver lists it.
pub trait Adapter: Debug + Send + Sync + 'static {
    /// Whose adapter it is.
    type Api: Api<Adapter = Self>;

    /// What is known of it.
    fn info(&self) -> &AdapterInfo;

    /// Opens a device. Devices that are open at the same time are separate ones, each with its own queue. The first takes 60
    /// to 80 ms on NVIDIA.
    ///
    /// # Errors
    /// What the driver said; [`Error::DeviceLost`] if the GPU is gone.
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
    /// Whose device it is.
    type Api: Api<Gpu = Self>;

    /// The adapter that this device runs on.
    fn info(&self) -> &AdapterInfo;

    /// Bytes that this process can expect to allocate now: what the driver says, or the total where it says nothing. Takes
    /// some 15 µs.
    fn memory_free(&self) -> u64;

    /// Bytes of the largest segment that is worth trying to allocate: more than the driver vouches for
    /// ([`max_allocation`](crate::Capabilities::max_allocation)) where drivers are known to give more.
    fn largest_segment(&self) -> u64;

    /// Allocates a segment of `bytes` bytes. Slow (0.2 ms for 2 MiB, 38 ms for 1 GiB on NVIDIA):
    /// the layer above sub-allocates. The memory is not cleared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said. A size of 0 is
    /// [`Error::Invalid`], a size over [`largest_segment`](Self::largest_segment) is out of memory, and
    /// a number of segments over [`max_allocations`](crate::Capabilities::max_allocations) [`Error::TooManyAllocations`].
    fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<<Self::Api as Api>::Segment, Error>;

    /// As [`compile_with`](Self::compile_with), with nothing asked for.
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

    /// Compiles a compute kernel whose entry point is `main`, with parameters in the bytes `[0, push_bytes)`. May be called
    /// from many threads at a time. Takes milliseconds, or some 40 µs if the device's cache on disk knows the kernel.
    /// `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Invalid`] for parameters beyond the adapter's, [`Error::Unsupported`] for a subgroup size that the adapter
    /// does not have, [`Error::DeviceLost`], or what the driver said.
    fn compile_with(
        &self,
        name: &str,
        code: &<Self::Api as Api>::Code,
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<<Self::Api as Api>::Pipeline, Error>;

    /// Writes the compiled pipelines to disk if there are new ones, together with what another
    /// process wrote meanwhile. A directory that cannot be written is not an error: the second run
    /// then starts as slowly as the first, and the log says so.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    fn save_pipeline_cache(&self) -> Result<(), Error>;

    /// The file of notes of this adapter and driver, beside that of the pipelines: what the layer above found out about them and
    /// keeps. What another `version` wrote is not read. `None` where nothing is kept.
    fn records_file(&self, version: u32) -> Option<CacheFile>;

    /// A new command stream of the queue. One is enough.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said.
    fn recorder(&self) -> Result<<Self::Api as Api>::Recorder, Error>;

    /// Makes a recording of what `body` records, which is not run now:
    /// [`Recorder::execute`] runs it. It begins with a barrier, so that each run comes after
    /// everything before it; what comes after a run and depends on it needs a barrier of its own. `body` gets `segments`,
    /// which live as long as the recording or a run of it; other segments are the caller's to keep.
    ///
    /// # Errors
    /// What `body` returns; [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said.
    fn record<E: From<Error>>(
        &self,
        segments: impl Into<Arc<[<Self::Api as Api>::Segment]>>,
        body: impl FnOnce(&mut <Self::Api as Api>::Encoder, &[<Self::Api as Api>::Segment]) -> Result<(), E>,
    ) -> Result<<Self::Api as Api>::Recording, E>;

    /// The device was lost.
    fn is_lost(&self) -> bool;

    /// For tests: from now on every call returns [`Error::DeviceLost`].
    fn simulate_loss(&self);
}

/// Records commands. They run in the order of the calls, and overlap unless there is a [`barrier`](Self::barrier) between
/// them.
pub trait Commands: Debug {
    /// Whose commands they are.
    type Api: Api;

    /// Runs a kernel with parameters `push` over `groups` workgroups. No group along an axis is no work.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `push` is not as long as the kernel's parameters, if there are more groups than
    /// [`max_groups`](crate::Capabilities::max_groups), or if the pipeline is another device's; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn dispatch(&mut self, pipeline: &<Self::Api as Api>::Pipeline, push: &[u8], groups: [u32; 3])
    -> Result<(), Error>;

    /// As [`dispatch`](Self::dispatch), where the workgroups' indices begin at `base`. The number of workgroups that a kernel is told is
    /// that of this run.
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

    /// Makes what earlier commands wrote visible to later ones, and keeps later ones from writing
    /// what earlier ones read. Costs 2 µs of GPU time. Two in a row are one; one with no
    /// later command is none. A [`Recorder`]'s also holds across submissions.
    fn barrier(&mut self);

    /// Copies `bytes` bytes. Large copies inside a device's memory are three times faster as a kernel.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside its segment, an overlap or another device's segment; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn copy(
        &mut self,
        src: &<Self::Api as Api>::Segment,
        src_offset: u64,
        dst: &<Self::Api as Api>::Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error>;
}

/// The command stream of a queue: records commands and submits them in batches. Dropping a recorder discards what was not
/// submitted and waits for what was.
pub trait Recorder: Commands + Sized + Send + 'static {
    /// Makes what the commands up to the next submit write to mapped memory visible to the host once
    /// that submit is complete. Costs about 3.5 µs of GPU time, once a submit.
    fn host_barrier(&mut self);

    /// Runs a recording after everything that was recorded before. Costs the host next to nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a recording of another device; [`Error::DeviceLost`]; what the driver said, and what was recorded since the last submit is then discarded.
    fn execute(&mut self, recording: &<Self::Api as Api>::Recording) -> Result<(), Error>;

    /// Records the time at which all earlier commands are done. A pair costs 1.8 µs of GPU time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn timestamp(&mut self) -> Result<<Self::Api as Api>::TimestampId, Error>;

    /// Nanoseconds from one timestamp to another, negative if that came before; `None` while their submissions are not complete,
    /// and for ever if one was discarded. Right also where the device's clock began again between them, which some do every
    /// hour.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timestamp of another recorder; [`Error::DeviceLost`].
    fn elapsed_ns(
        &self,
        from: &<Self::Api as Api>::TimestampId,
        to: &<Self::Api as Api>::TimestampId,
    ) -> Result<Option<f64>, Error>;

    /// Runs `command`, which records one command, and has the device note when that began and ended: behind the
    /// barrier that was asked for, if any. [`take_spans`](Self::take_spans) gives the times under the name `id`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`]; the
    /// command's.
    fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error>;

    /// Moves the spans that are known into `out`; those of work that is not done follow later. One that the driver lost
    /// is left out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error>;

    /// Reads the device's clock and the host's. Where the driver cannot read the device's, a timestamp that is submitted
    /// alone stands for it: the queue should then have nothing to do.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn clocks(&mut self) -> Result<Clocks, Error>;

    /// Commands recorded since the last submit, barriers not counted.
    fn recorded(&self) -> usize;

    /// Sends what was recorded to the GPU. With nothing recorded, returns the last ticket.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said; what was recorded is
    /// then discarded.
    fn submit(&mut self) -> Result<Ticket, Error>;

    /// As [`submit`](Self::submit), but always as the next ticket, also with nothing recorded, and if the driver refuses
    /// the commands: for a caller that promised the ticket before.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). The ticket completes all the same, unless it is [`Error::DeviceLost`].
    fn submit_next(&mut self) -> Result<Ticket, Error>;

    /// The last ticket that [`submit`](Self::submit) returned.
    fn last_ticket(&self) -> Ticket;

    /// Returns when `ticket` is complete; see [`Timeline::wait`].
    ///
    /// # Errors
    /// As [`Timeline::wait`].
    fn wait(&mut self, ticket: Ticket) -> Result<(), Error>;

    /// Submits what was recorded, and returns when the GPU is done with everything. Afterwards the
    /// driver, too, knows that it is done with every segment, whichever way completion is reported.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`wait`](Self::wait).
    fn wait_idle(&mut self) -> Result<(), Error>;

    /// The progress of this recorder, for other threads.
    fn timeline(&self) -> &<Self::Api as Api>::Timeline;
}
