//! One device's queue, which its threads share: what is pending, the memory that it uses and the
//! capture that takes its place, under one lock; in front of the [`Submission`], which has another.

use crate::adapter_records::AdapterRecords;
use crate::backend::Gpu;
use crate::capture::slot::CaptureSlot;
use crate::error::Error;
use crate::fault::FaultBlock;
use crate::kernels::store::KernelStore;
use crate::memory::device_memory::{DeviceMemory, DeviceSegments};
use crate::memory::host_pool::HostPools;
use crate::queue::pending::Pending;
use crate::queue::policy::WorkBound;
use crate::submit::stream::Stream;
use crate::submit::submission::Submission;
use dml_gpu::traits::*;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue of one device. Everything that may outlive the device's handle, as graphs and events,
/// holds this.
///
/// Its methods are in the files of this folder: [`enqueue`](crate::queue::enqueue),
/// [`throttle`](crate::queue::throttle), [`flush`](crate::queue::flush),
/// [`wait`](crate::queue::wait), [`allocate`](crate::queue::allocate),
/// [`faults`](crate::queue::faults), [`profile`](crate::queue::profile).
pub(crate) struct DeviceQueue {
    // Declared, and so dropped, before the memory that its work uses: the end of the stream waits
    // for the device.
    pub(crate) submission: Submission,
    pub(super) state: Mutex<State>,
    /// Some thread is capturing a graph. Only a hint to look further: the truth is in `state`.
    capturing: AtomicBool,
    /// The device's kernels.
    pub(crate) kernels: Arc<KernelStore>,
    /// What is known of the adapter and its driver.
    pub(crate) records: Arc<AdapterRecords>,
    /// The most work of one submission.
    pub(crate) work_bound: WorkBound,
    /// Where kernels report errors.
    pub(crate) fault: FaultBlock,
    /// The host's memory that copies go through: given back to the system with the device's cached
    /// memory.
    pub(crate) host_pools: HostPools,
    /// Other memory that work uses.
    resources: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// What the queue's lock protects.
pub(crate) struct State {
    pub(crate) pending: Pending,
    pub(crate) memory: DeviceMemory,
    pub(crate) capture: CaptureSlot,
}

impl DeviceQueue {
    /// The queue of an adapter that was opened as the device of an index. Until
    /// [`SubmitThread::start`](crate::queue::thread::SubmitThread::start) is called, only threads
    /// that wait submit.
    ///
    /// # Errors
    /// What the driver said.
    pub(crate) fn new(gpu: Gpu, device: usize) -> Result<Self, Error> {
        let recorder = gpu.recorder()?;
        let timeline = recorder.timeline().clone();
        let pending = Pending::new(&gpu, timeline.clone())?;
        let records = Arc::new(AdapterRecords::of(&gpu));
        let kernels = Arc::new(KernelStore::new(gpu.clone(), Arc::clone(&records)));
        let stream = Stream::new(recorder, Arc::clone(&kernels), Arc::clone(pending.ring_memory()));
        let memory = DeviceMemory::new(DeviceSegments::new(gpu.clone(), device));
        Ok(Self {
            kernels,
            records,
            work_bound: WorkBound::new(gpu.info().capabilities.compute_units),
            fault: FaultBlock::new(&gpu)?,
            submission: Submission::new(gpu, device, stream, timeline),
            state: Mutex::new(State { pending, memory, capture: CaptureSlot::new(device) }),
            capturing: AtomicBool::new(false),
            host_pools: HostPools::new(),
            resources: Mutex::default(),
        })
    }

    /// The device's index.
    pub(crate) fn device(&self) -> usize {
        self.submission.device()
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        self.submission.gpu()
    }

    /// Locks the queue. Lock order: queue, then stream (see [`crate::queue`]).
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps memory that work may use until the device is done with it, also after a loss.
    pub(crate) fn keep(&self, memory: Arc<dyn Any + Send + Sync>) {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    // ---- captures

    /// Whether some thread may be capturing: a hint to look with the queue locked.
    #[inline]
    pub(crate) fn may_capture(&self) -> bool {
        self.capturing.load(Ordering::Relaxed)
    }

    /// A capture began or ended. To be called with the queue locked.
    pub(crate) fn set_capturing(&self, capturing: bool) {
        self.capturing.store(capturing, Ordering::Relaxed);
    }

    /// Fails if the calling thread is capturing, and with it the capture: for what a replay would
    /// not do.
    ///
    /// # Errors
    /// [`Error::Graph`].
    #[inline]
    pub(crate) fn refuse_in_capture(&self, what: &str) -> Result<(), Error> {
        if self.may_capture() { self.lock().capture.refuse(what) } else { Ok(()) }
    }
}

impl Drop for DeviceQueue {
    /// Segments are freed after this: nothing may use them any more.
    fn drop(&mut self) {
        if let Err(e) = self.drain_locked(&mut self.lock()) {
            tracing::debug!("closing device {}: {e}", self.device());
        }
    }
}
