//! Adapters that can be opened, and opened devices.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::adapter::AdapterInfo;
use crate::api::Api;
use crate::error::Error;
use crate::kept::KeptFile;
use crate::memory::MemoryClass;

/// How to open a device.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The directory of what is kept on disk, the compiled pipelines for one; `None` means `TORCH_DML_CACHE_DIR`, else
    /// `torch-dml` in the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// How long a wait goes on without progress before the device counts as lost; `None` means
    /// `TORCH_DML_TIMEOUT_S` seconds, else 300.
    pub timeout: Option<Duration>,
}

/// What a pipeline may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PipelineOptions {
    /// Invocations of a subgroup; a power of two within the adapter's
    /// [`subgroup_size_min`](crate::Capabilities::subgroup_size_min) and
    /// [`subgroup_size_max`](crate::Capabilities::subgroup_size_max). `None` takes
    /// [`subgroup_size`](crate::Capabilities::subgroup_size).
    pub subgroup_size: Option<u32>,
    /// Every subgroup is full. The workgroup's x size must then be a multiple of the subgroup size.
    /// Kernels with matrix units need it on adapters with several subgroup sizes; ignored where
    /// there is only one.
    pub full_subgroups: bool,
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
    fn notes_file(&self, version: u32) -> Option<KeptFile>;

    /// A new command stream of the queue. One is enough.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said.
    fn recorder(&self) -> Result<<Self::Api as Api>::Recorder, Error>;

    /// Makes a recording of what `body` records, which is not run now:
    /// [`Recorder::execute`](crate::Recorder::execute) runs it. It begins with a barrier, so that each run comes after
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
