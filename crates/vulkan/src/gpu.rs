//! An opened device and its queues.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ash::{amd, vk};

use crate::adapter::{AdapterCore, AdapterInfo, QueueFamily};
use crate::clock::{self, DeviceClock};
use crate::error::Error;
use crate::extensions::Features;
use crate::memory::{self, MemoryClass, Segment};
use crate::pipeline::{Layouts, Pipeline, PipelineOptions};
use crate::pipeline_cache::PipelineCache;
use crate::recorder::Recorder;

/// How to open a device.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The directory of the pipeline cache file; `None` means `TORCH_DML_CACHE_DIR`, else
    /// `torch-dml` in the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// How long a wait goes on without progress before the device counts as lost; `None` means
    /// `TORCH_DML_TIMEOUT_S` seconds, else 300.
    pub timeout: Option<Duration>,
}

/// An opened device: one compute queue, a transfer queue where there is one, memory, pipelines.
/// A clone is another handle of the same device. The device closes when the last handle, segment,
/// pipeline, recorder and timeline are gone.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) core: Arc<GpuCore>,
}

pub(crate) struct GpuCore {
    pub(crate) device: ash::Device,
    pub(crate) adapter: Arc<AdapterCore>,
    pub(crate) compute: Queue,
    pub(crate) transfer: Option<Queue>,
    pub(crate) marker: Option<amd::buffer_marker::Device>,
    /// Reads the device's clock without the queue.
    pub(crate) clock: Option<DeviceClock>,
    pub(crate) layouts: Layouts,
    pub(crate) cache: PipelineCache,
    pub(crate) full_subgroups: bool,
    /// How long a wait goes on without progress.
    pub(crate) patience: Duration,
    families: Vec<u32>,
    /// Semaphores that are not needed any more, until the device closes.
    retired: Mutex<Vec<vk::Semaphore>>,
    lost: AtomicBool,
    hung: AtomicBool,
}

/// A queue, which one thread at a time may use.
pub(crate) struct Queue {
    raw: Mutex<vk::Queue>,
    pub(crate) family: QueueFamily,
}

impl Queue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, vk::Queue> {
        lock(&self.raw)
    }
}

/// The driver's side of a device, with nothing of its owner in it.
///
/// It outlives its owner and waits for the next one. NVIDIA's driver (580.159) now and then hangs in
/// `vkDestroyDevice` while other threads use other devices, holding the loader's lock: it joins a
/// worker thread of its own that spins. A device is therefore never destroyed.
pub(crate) struct RawDevice {
    device: ash::Device,
    compute: vk::Queue,
    transfer: Option<vk::Queue>,
    marker: Option<amd::buffer_marker::Device>,
    clock: Option<DeviceClock>,
    full_subgroups: bool,
    families: Vec<u32>,
}

impl RawDevice {
    fn create(adapter: &AdapterCore) -> Result<Self, Error> {
        let instance = &adapter.instance.raw;
        let (major, minor, patch) = adapter.info.api_version;
        let api = vk::make_api_version(0, major, minor, patch);
        let features = Features::query(instance, adapter.physical, api)
            .map_err(|e| Error::from_vk("vkEnumerateDeviceExtensionProperties", e))?;

        let priority = [1.0];
        let families: Vec<u32> =
            std::iter::once(adapter.compute.index).chain(adapter.transfer.map(|family| family.index)).collect();
        let queues: Vec<_> = families
            .iter()
            .map(|&index| vk::DeviceQueueCreateInfo::default().queue_family_index(index).queue_priorities(&priority))
            .collect();
        let names: Vec<_> = features.extensions().iter().map(|n| n.as_ptr()).collect();
        let mut chain = features.copy_unchained();
        let create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names)
            .enabled_features(&features.core);
        let create = chain.chain_device(create);
        // SAFETY: the adapter offers every extension and feature that is enabled here.
        let device = unsafe { instance.create_device(adapter.physical, &create, None) }
            .map_err(|e| Error::from_vk("vkCreateDevice", e))?;
        // SAFETY: the device was created with one queue of each of these families.
        let queue = |family: u32| unsafe { device.get_device_queue(family, 0) };
        let marker = features.has(amd::buffer_marker::NAME).then(|| amd::buffer_marker::Device::new(instance, &device));
        Ok(Self {
            compute: queue(adapter.compute.index),
            transfer: adapter.transfer.map(|family| queue(family.index)),
            marker,
            clock: clock::device_clock(adapter, &device, &features),
            full_subgroups: features.full_subgroups(),
            families,
            device,
        })
    }
}

impl Gpu {
    pub(crate) fn open(adapter: &Arc<AdapterCore>, options: &OpenOptions) -> Result<Self, Error> {
        let parked = lock(&adapter.parked).pop();
        let raw = match parked {
            Some(raw) => raw,
            None => RawDevice::create(adapter)?,
        };
        let queue = |raw: vk::Queue, family: QueueFamily| Queue { raw: Mutex::new(raw), family };
        let cache = PipelineCache::load(&raw.device, adapter, options.cache_dir.clone());
        Ok(Self {
            core: Arc::new(GpuCore {
                adapter: Arc::clone(adapter),
                compute: queue(raw.compute, adapter.compute),
                transfer: raw.transfer.zip(adapter.transfer).map(|(raw, family)| queue(raw, family)),
                marker: raw.marker,
                clock: raw.clock,
                layouts: Layouts::default(),
                cache,
                full_subgroups: raw.full_subgroups,
                patience: options.timeout.unwrap_or_else(patience),
                families: raw.families,
                retired: Mutex::default(),
                lost: AtomicBool::new(false),
                hung: AtomicBool::new(false),
                device: raw.device,
            }),
        })
    }

    /// The adapter that this device runs on.
    pub fn info(&self) -> &AdapterInfo {
        &self.core.adapter.info
    }

    /// As [`Adapter::memory_free`](crate::Adapter::memory_free).
    pub fn memory_free(&self) -> u64 {
        memory::free_bytes(&self.core.adapter)
    }

    /// Bytes of the largest segment that is worth trying to allocate: more than the driver vouches for
    /// ([`max_allocation`](crate::Capabilities::max_allocation)) where drivers are known to give more.
    pub fn largest_segment(&self) -> u64 {
        memory::largest_segment(&self.core.adapter)
    }

    /// Allocates a segment of `bytes` bytes. Slow (0.2 ms for 2 MiB, 38 ms for 1 GiB on NVIDIA):
    /// the layer above sub-allocates. The memory is not cleared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said. A size of 0 is
    /// [`Error::Invalid`]. A size over [`largest_segment`](Self::largest_segment), or
    /// a number of segments over [`max_allocations`](crate::Capabilities::max_allocations), is out of memory.
    pub fn allocate(&self, bytes: u64, class: MemoryClass) -> Result<Segment, Error> {
        Segment::new(&self.core, bytes, class)
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
        Pipeline::new(&self.core, name, spirv, push_bytes, options)
    }

    /// Writes the compiled pipelines to disk if there are new ones, together with what another
    /// process wrote meanwhile. A directory that cannot be written is not an error: the second run
    /// then starts as slowly as the first, and the log says so at debug level.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    pub fn save_pipeline_cache(&self) -> Result<(), Error> {
        self.core.check()?;
        self.core.cache.save(&self.core.device, &self.core.adapter)
    }

    /// A new command stream of the compute queue. One is enough; each costs two semaphores' creation (up to 1 ms).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`], or what the driver said.
    pub fn recorder(&self) -> Result<Recorder, Error> {
        Recorder::new(&self.core, false)
    }

    /// A new command stream of the transfer queue: copies only. `None` where there is no such queue.
    ///
    /// # Errors
    /// As [`Gpu::recorder`].
    pub fn transfer_recorder(&self) -> Result<Option<Recorder>, Error> {
        if self.core.transfer.is_none() {
            return Ok(None);
        }
        Recorder::new(&self.core, true).map(Some)
    }

    /// The device was lost.
    pub fn is_lost(&self) -> bool {
        self.core.is_lost()
    }

    /// For tests: from now on every call returns [`Error::DeviceLost`].
    pub fn simulate_loss(&self) {
        self.core.mark_lost();
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("name", &self.info().name).field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}

impl GpuCore {
    /// The queue families that share every buffer.
    pub(crate) fn families(&self) -> &[u32] {
        &self.families
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::DeviceLost);
        }
        Ok(())
    }

    pub(crate) fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// The GPU did not finish in time: what it may still use is leaked.
    pub(crate) fn mark_hung(&self) {
        self.hung.store(true, Ordering::Relaxed);
        self.mark_lost();
    }

    /// Takes a semaphore that no submission uses any more. It is destroyed when the device closes:
    /// Mesa's queue thread (22.3) may still touch one whose value a wait has already seen.
    pub(crate) fn retire(&self, semaphore: vk::Semaphore) {
        lock(&self.retired).push(semaphore);
    }

    pub(crate) fn is_hung(&self) -> bool {
        self.hung.load(Ordering::Relaxed)
    }

    /// Maps a `VkResult`, noting the loss of the device and the bytes that found no memory.
    pub(crate) fn error_of(&self, call: &'static str, result: vk::Result, bytes: u64) -> Error {
        match Error::from_vk(call, result) {
            Error::DeviceLost => {
                if !self.is_lost() {
                    tracing::error!("{}: device lost in {call}", self.adapter.info.name);
                }
                self.mark_lost();
                Error::DeviceLost
            }
            Error::OutOfMemory { .. } => Error::OutOfMemory { requested: bytes },
            other => other,
        }
    }

    pub(crate) fn error(&self, call: &'static str, result: vk::Result) -> Error {
        self.error_of(call, result, 0)
    }
}

impl Drop for GpuCore {
    fn drop(&mut self) {
        if self.is_hung() {
            return; // The GPU may still use what would be destroyed.
        }
        // SAFETY: every object of the device holds this core, so none is left but the two kept here;
        // recorders waited for their work.
        unsafe {
            self.layouts.destroy(&self.device);
            self.cache.destroy(&self.device);
        }
        if self.is_lost() {
            return; // Of no use to anybody.
        }
        for queue in std::iter::once(&self.compute).chain(&self.transfer) {
            // SAFETY: the queue is locked. It has nothing to do, so this does not block.
            if let Err(error) = unsafe { self.device.queue_wait_idle(*queue.lock()) } {
                tracing::debug!("vkQueueWaitIdle failed: {error:?}");
                return;
            }
        }
        for semaphore in lock(&self.retired).drain(..) {
            // SAFETY: the queues are idle.
            unsafe { self.device.destroy_semaphore(semaphore, None) };
        }
        let raw = RawDevice {
            device: self.device.clone(),
            compute: *self.compute.lock(),
            transfer: self.transfer.as_ref().map(|queue| *queue.lock()),
            marker: self.marker.take(),
            clock: self.clock,
            full_subgroups: self.full_subgroups,
            families: std::mem::take(&mut self.families),
        };
        lock(&self.adapter.parked).push(raw);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `TORCH_DML_TIMEOUT_S`, else 300 seconds.
fn patience() -> Duration {
    std::env::var("TORCH_DML_TIMEOUT_S")
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok())
        .filter(|&seconds| seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(Duration::from_secs(300))
}
