//! An opened device, as the layer above sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dml_environment::TIMEOUT;

use crate::adapter::{Adapter, AdapterInfo};
use crate::command::{Encoder, Recording};
use crate::device::DeviceShared;
use crate::error::Error;
use crate::kept::{KeptFile, Kind, folder};
use crate::memory::{MemoryClass, Segment};
use crate::pipeline::{Compiler, Pipeline, PipelineOptions};
use crate::submit::Recorder;

/// How long a wait goes on without progress where nobody says how long.
const TIMEOUT_IF_UNSET: Duration = Duration::from_secs(300);

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

/// An opened device: one queue, memory, pipelines.
/// A clone is another handle of the same device. The device closes when the last handle, segment,
/// pipeline, recording, recorder and timeline are gone.
#[derive(Clone)]
pub struct Gpu {
    device: Arc<DeviceShared>,
    compiler: Arc<Compiler>,
    /// Where files are kept.
    folder: Option<Arc<Path>>,
}

impl Adapter {
    /// Opens a device. Devices that are open at the same time are separate ones, each with its own
    /// queues. The first takes 60 to 80 ms on NVIDIA; the driver's side of a closed one is used again.
    ///
    /// # Errors
    /// What the driver said; [`Error::DeviceLost`] if the GPU is gone.
    pub fn open(&self) -> Result<Gpu, Error> {
        self.open_with(&OpenOptions::default())
    }

    /// Opens a device with options.
    ///
    /// # Errors
    /// As [`Adapter::open`].
    pub fn open_with(&self, options: &OpenOptions) -> Result<Gpu, Error> {
        let timeout = options.timeout.or_else(|| TIMEOUT.get()).unwrap_or(TIMEOUT_IF_UNSET);
        let device = DeviceShared::open(&self.shared, timeout)?;
        let folder = folder(options.cache_dir.clone()).map(Arc::from);
        let compiler = Arc::new(Compiler::new(&device, folder.as_deref()));
        Ok(Gpu { device, compiler, folder })
    }
}

impl Gpu {
    /// The adapter that this device runs on.
    pub fn info(&self) -> &AdapterInfo {
        &self.device.adapter.info
    }

    /// As [`Adapter::memory_free`](crate::Adapter::memory_free).
    pub fn memory_free(&self) -> u64 {
        self.device.adapter.memory_free()
    }

    /// Bytes of the largest segment that is worth trying to allocate: more than the driver vouches for
    /// ([`max_allocation`](crate::Capabilities::max_allocation)) where drivers are known to give more.
    pub fn largest_segment(&self) -> u64 {
        self.device.adapter.largest_segment()
    }

    /// Allocates a segment of `bytes` bytes. Slow (0.2 ms for 2 MiB, 38 ms for 1 GiB on NVIDIA):
    /// the layer above sub-allocates. The memory is not cleared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said. A size of 0 is
    /// [`Error::Invalid`], a size over [`largest_segment`](Self::largest_segment) is out of memory, and
    /// a number of segments over [`max_allocations`](crate::Capabilities::max_allocations) [`Error::TooManyAllocations`].
    pub fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<Segment, Error> {
        Segment::new(&self.device, bytes, class)
    }

    /// Compiles a compute kernel: SPIR-V with the entry point `main`, no descriptor sets, and push
    /// constants in the bytes `[0, push_bytes)`. May be called from many threads at a time.
    /// Takes milliseconds, or some 40 µs if the pipeline cache knows the kernel.
    /// `name` is for messages.
    ///
    /// # Errors
    /// [`Error::Invalid`] for push constants beyond the adapter's, [`Error::DeviceLost`], or what
    /// the driver said.
    pub fn compile(&self, name: &str, spirv: &[u32], push_bytes: u32) -> Result<Pipeline, Error> {
        self.compile_with(name, spirv, push_bytes, &PipelineOptions::default())
    }

    /// As [`Gpu::compile`], with a subgroup size.
    ///
    /// # Errors
    /// As [`Gpu::compile`], and [`Error::Unsupported`] for a subgroup size that the adapter does not have.
    pub fn compile_with(
        &self,
        name: &str,
        spirv: &[u32],
        push_bytes: u32,
        options: &PipelineOptions,
    ) -> Result<Pipeline, Error> {
        self.compiler.compile(name, spirv, push_bytes, options)
    }

    /// Writes the compiled pipelines to disk if there are new ones, together with what another
    /// process wrote meanwhile. A directory that cannot be written is not an error: the second run
    /// then starts as slowly as the first, and the log says so at debug level.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    pub fn save_pipeline_cache(&self) -> Result<(), Error> {
        self.compiler.save()
    }

    /// The file of notes of this adapter and driver, beside that of the pipelines: what the layer above found out about them and
    /// keeps. What another `version` wrote is not read. `None` where nothing is kept.
    pub fn notes_file(&self, version: u32) -> Option<KeptFile> {
        let kind = Kind { name: "notes", magic: *b"TDMLNO\x00\x01", version, most_bytes: 1 << 20 };
        self.folder.as_deref().map(|folder| KeptFile::new(&self.device.adapter, folder, kind))
    }

    /// A new command stream of the queue. One is enough; each costs two semaphores' creation (up to 1 ms).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said.
    pub fn recorder(&self) -> Result<Recorder, Error> {
        Recorder::new(&self.device)
    }

    /// Makes a recording of what `body` records, which is not run now: [`Recorder::execute`] runs it. It begins with a
    /// barrier, so that each run comes after everything before it; what comes after a run and depends on it needs a
    /// barrier of its own. `body` gets `segments`, which live as long as the recording or a run of it; other segments are
    /// the caller's to keep.
    ///
    /// # Errors
    /// What `body` returns; [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said.
    pub fn record<E: From<Error>>(
        &self,
        segments: impl Into<Arc<[Segment]>>,
        body: impl FnOnce(&mut Encoder, &[Segment]) -> Result<(), E>,
    ) -> Result<Recording, E> {
        Recording::new(&self.device, segments.into(), body)
    }

    /// The device was lost.
    pub fn is_lost(&self) -> bool {
        self.device.is_lost()
    }

    /// For tests: from now on every call returns [`Error::DeviceLost`].
    pub fn simulate_loss(&self) {
        self.device.mark_lost();
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("name", &self.info().name).field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}
