//! One device's queue, which its threads share: what is pending, the memory that it uses and the
//! capture that takes its place, under one lock; in front of the [`Submission`], which has another.
//!
//! Whoever needs both locks takes this one first. Nothing waits for the device with this one
//! locked, but for what must not change meanwhile: a drain, and room in the ring.

use crate::backend::Gpu;
use crate::capture::slot::CaptureSlot;
use crate::error::Error;
use crate::fault::FaultBlock;
use crate::kernels::store::KernelStore;
use crate::memory::device_memory::{DeviceMemory, DeviceSegments};
use crate::memory::host_pool::HostPools;
use crate::profile::activity::Activity;
use crate::queue::pending::Pending;
use crate::queue::policy::WorkBound;
use crate::submit::batch::Batch;
use crate::submit::statistics::QueueStats;
use crate::submit::stream::Stream;
use crate::submit::submission::{More, Submission};
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue of one device. Everything that may outlive the device's handle, as graphs and events,
/// holds this.
pub(crate) struct DeviceQueue {
    // Declared, and so dropped, before the memory that its work uses: the end of the stream waits
    // for the device.
    pub(crate) submission: Submission,
    /// Locked before the stream by whoever needs both.
    state: Mutex<State>,
    /// Some thread is capturing a graph. Only a hint to look further: what counts is in `state`.
    capturing: AtomicBool,
    /// The device's kernels.
    pub(crate) kernels: Arc<KernelStore>,
    /// What one submission does at most.
    pub(crate) work_bound: WorkBound,
    /// Where kernels report what they cannot do.
    pub(crate) fault: FaultBlock,
    /// What copies go through: given back to the system with the device's cached memory.
    pub(crate) host_pools: HostPools,
    /// Other memory that work uses.
    kept: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// What the lock of those that enqueue protects.
pub(crate) struct State {
    pub(crate) pending: Pending,
    pub(crate) memory: DeviceMemory,
    pub(crate) capture: CaptureSlot,
}

impl DeviceQueue {
    /// The queue of an adapter that was opened as the device of an index. Nobody submits for it yet
    /// but those who wait: see [`start`](crate::queue::thread::start).
    ///
    /// # Errors
    /// What the driver said.
    pub(crate) fn new(gpu: Gpu, device: usize) -> Result<Self, Error> {
        let recorder = gpu.recorder()?;
        let timeline = recorder.timeline().clone();
        let pending = Pending::new(&gpu, timeline.clone())?;
        let kernels = Arc::new(KernelStore::new(gpu.clone()));
        let stream = Stream::new(recorder, Arc::clone(&kernels), Arc::clone(pending.ring_memory()));
        let memory = DeviceMemory::new(DeviceSegments::new(gpu.clone(), device));
        Ok(Self {
            kernels,
            work_bound: WorkBound::new(gpu.info().capabilities.compute_units),
            fault: FaultBlock::new(&gpu)?,
            submission: Submission::new(gpu, device, stream, timeline),
            state: Mutex::new(State { pending, memory, capture: CaptureSlot::new(device) }),
            capturing: AtomicBool::new(false),
            host_pools: HostPools::new(),
            kept: Mutex::default(),
        })
    }

    /// The device's index.
    pub(crate) fn device(&self) -> usize {
        self.submission.device()
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        self.submission.gpu()
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps memory that work may use until the device is done with it, also after a loss.
    pub(crate) fn keep(&self, memory: Arc<dyn Any + Send + Sync>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    // ---- captures

    /// Whether some thread may be capturing: a hint to look with the queue locked.
    #[inline]
    pub(crate) fn may_capture(&self) -> bool {
        self.capturing.load(Ordering::Relaxed)
    }

    /// A capture began or ended. With the queue locked.
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

    // ---- submitting

    /// Ends the pending batch.
    fn take(&self, state: &mut State) -> Batch {
        let handover = self.submission.handover();
        handover.taken();
        state.pending.take(handover.spare(), &mut state.memory)
    }

    /// Leaves the pending batch to the thread that submits.
    pub(crate) fn leave(&self, state: &mut State) {
        let batch = self.take(state);
        self.submission.handover().put(batch);
    }

    /// Records and submits all that is pending, then `more`, as one submission. With `for_host`,
    /// what was written to mapped memory is visible when it is done. Returns its ticket, or with
    /// nothing to submit the last one.
    fn submit(&self, state: &mut State, for_host: bool, more: Option<More<'_>>) -> (Result<(), Error>, Ticket) {
        let stream = self.submission.up_to_date();
        if !state.pending.has_pending() && more.is_none() && (!for_host || stream.is_host_visible()) {
            return (self.submission.take_deferred(), state.pending.last_ticket());
        }
        let batch = self.take(state);
        let ticket = batch.ticket;
        (self.submission.submit(stream, batch, for_host, more), ticket)
    }

    /// Submits everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.flush_locked(&mut self.lock())
    }

    /// Submits everything enqueued.
    pub(crate) fn flush_locked(&self, state: &mut State) -> Result<(), Error> {
        self.submit(state, false, None).0
    }

    /// Submits everything enqueued, and `more` after it.
    pub(crate) fn submit_with(&self, state: &mut State, more: More<'_>) -> (Result<(), Error>, Ticket) {
        self.submit(state, false, Some(more))
    }

    /// Submits everything enqueued and `more` after it for a host that is about to wait for it.
    pub(crate) fn submit_for_host(&self, state: &mut State, more: Option<More<'_>>) -> (Result<(), Error>, Ticket) {
        state.pending.waits();
        self.submit(state, true, more)
    }

    /// Submits everything enqueued and `more` after it for a host that is about to poll for what
    /// `more` writes.
    pub(crate) fn submit_polled(&self, state: &mut State, more: More<'_>) -> (Result<(), Error>, Ticket) {
        state.pending.waits();
        self.submit(state, false, Some(more))
    }

    /// The thread's: submits what the host left pending, and keeps an error for the next call.
    ///
    /// A device that has work gets more only if it `must`.
    pub(crate) fn submit_quiet(&self, must: bool) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if state.pending.has_pending() {
            // An error is found again by whoever records.
            if !must && matches!(state.pending.is_idle(), Ok(false)) || !self.submission.has_room() {
                return;
            }
            self.leave(&mut state);
        } else {
            self.submission.handover().taken();
        }
        drop(state);
        self.submission.record_handed(|| self.submission.handover().is_stopped());
    }

    // ---- waiting

    /// Waits for a ticket, without the lock.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.submission.wait(ticket)?;
        self.completed(ticket);
        Ok(())
    }

    /// All commands up to `ticket` are done.
    pub(crate) fn completed(&self, ticket: Ticket) {
        self.lock().pending.completed(ticket);
        self.submission.completed(ticket);
    }

    /// Submits what `ticket` stands for, if that was not done.
    pub(crate) fn ensure_submitted(&self, ticket: Ticket) -> Result<(), Error> {
        if self.submission.timeline().last_ticket() >= ticket {
            return Ok(());
        }
        self.flush()?;
        self.submission.alive()
    }

    /// Waits for everything enqueued.
    ///
    /// # Errors
    /// [`Error::Graph`] in a capture; [`Error::DeviceLost`], or an error of that work.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.refuse_in_capture("waiting for the device (synchronize)")?;
        self.settle()?;
        self.check_faults()
    }

    /// Submits everything enqueued, and waits for it with nothing locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`], or an error of that work.
    fn settle(&self) -> Result<(), Error> {
        self.await_room_to_wait()?;
        let (flushed, ticket) = self.submit_for_host(&mut self.lock(), None);
        self.wait(ticket)?;
        flushed
    }

    /// As [`settle`](Self::settle), before a drain, which waits with the queue locked: then little
    /// is left for it to wait for. An error of pending work is kept for the next call.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn settle_before_drain(&self) -> Result<(), Error> {
        match self.settle() {
            Err(Error::Interrupted) => Err(Error::Interrupted),
            other => self.defer_unless_lost(other),
        }
    }

    /// For the end of the process: waits for what the driver was given, and leaves alone what it
    /// was not, which nobody misses. A later call on the device still runs that.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.submission.handover().stop();
        self.submission.alive()?;
        self.submission.wait_submitted()
    }

    /// Whether everything enqueued is done. Does not wait, but submits.
    ///
    /// # Errors
    /// [`Error::Graph`] in a capture; [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn idle(&self) -> Result<bool, Error> {
        self.submission.alive()?;
        self.refuse_in_capture("asking whether the device is done")?;
        let mut state = self.lock();
        self.flush_locked(&mut state)?;
        let idle = state.pending.is_idle();
        self.submission.wrap(idle)
    }

    /// Waits until the driver, too, is done with all work. An error of that work is kept for the
    /// next call.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn drain(&self) -> Result<(), Error> {
        self.settle_before_drain()?;
        let drained = self.drain_locked(&mut self.lock());
        self.defer_unless_lost(drained)
    }

    /// Submits everything, and waits until the driver, too, is done with every segment. Whoever can
    /// [settles](Self::settle_before_drain) before, which counts as the wait.
    pub(crate) fn drain_locked(&self, state: &mut State) -> Result<(), Error> {
        let (flushed, ticket) = self.submit(state, true, None);
        self.submission.wait_idle(ticket)?;
        state.pending.completed(ticket);
        flushed
    }

    /// Keeps an error of pending work, which is not this call's, for the next call.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn defer_unless_lost(&self, result: Result<(), Error>) -> Result<(), Error> {
        if let Err(e) = result {
            self.submission.alive()?;
            self.submission.defer(e);
        }
        Ok(())
    }

    // ---- faults

    /// Where a kernel that the calling thread launches, or captures, reports what it cannot do.
    #[inline]
    pub(crate) fn fault_address(&self) -> u64 {
        if self.may_capture()
            && let Some(capture) = self.lock().capture.here()
        {
            capture.reports = true;
            return self.fault.of_graphs().start;
        }
        self.fault.give()
    }

    /// Returns the fault that a kernel of the calling thread reported, or of one that has ended,
    /// once. Waits for all work if there is one.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::DeviceLost`].
    #[inline]
    pub(crate) fn check_faults(&self) -> Result<(), Error> {
        if self.fault.raised_for_wait() { self.raise_fault() } else { Ok(()) }
    }

    /// Waits for all work, and returns the fault that a kernel reported.
    #[cold]
    pub(crate) fn raise_fault(&self) -> Result<(), Error> {
        self.settle_before_drain()?;
        // Locked until the report is taken: nobody else takes it too, and no new work writes
        // another meanwhile.
        let mut state = self.lock();
        self.drain_locked(&mut state)?;
        self.fault.take()
    }

    // ---- statistics and profile

    pub(crate) fn stats(&self) -> QueueStats {
        let QueueStats { commands, waits, .. } = self.lock().pending.stats();
        QueueStats { commands, waits, ..self.submission.stats() }
    }

    /// Waits for the device, and notes from then on what runs on it.
    ///
    /// # Errors
    /// [`dml_gpu::Error::Unsupported`] without timestamps; [`Error::DeviceLost`]; an error of
    /// earlier work.
    pub(crate) fn start_profile(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.settle_before_drain()?;
        let mut state = self.lock();
        self.drain_locked(&mut state)?;
        self.submission.start_profile()?;
        state.pending.set_profiled(true);
        Ok(())
    }

    /// Waits for the device, and returns what ran on it since
    /// [`start_profile`](Self::start_profile).
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. An error of earlier work is a later call's.
    pub(crate) fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        let mut state = self.lock();
        if !state.pending.is_profiled() {
            return Ok(Vec::new());
        }
        let drained = self.drain_locked(&mut state);
        state.pending.set_profiled(false);
        let told = self.submission.stop_profile();
        self.submission.alive()?;
        self.defer_unless_lost(drained)?;
        told
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
