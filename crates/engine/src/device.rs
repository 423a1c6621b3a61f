//! The device: memory, kernels, the queue and what waits for it.

use crate::error::Error;
use crate::event::{Event, EventState};
use crate::fault::FaultBlock;
use crate::fusion::chain::Fusion;
use crate::fusion::pointwise::Pointwise;
use crate::generator::Generator;
use crate::graph::Capturing;
use crate::kernels::cache::{KernelCache, KernelRef};
use crate::kernels::key::KernelKey;
use crate::memory::allocator::{Allocator, COMMON, GrowError, Source};
use crate::memory::host_pool::HostPool;
use crate::memory::pinned::Pinned;
use crate::memory::statistics::{MemoryStats, SegmentInfo};
use crate::profile::measure::{self, Stage};
use crate::queue::batch::Batch;
use crate::queue::launch::Launch;
use crate::queue::pending::{MOST_RING_BYTES, Memory, Queue, QueueStats};
use crate::submit::stream::Stream;
use crate::submit::submitter::Submitter;
use crate::transfer::copy_kernel;
use crate::transfer::polled::Slots;
use dml_kernel::Kernel;
use dml_vulkan::{Adapter, AdapterInfo, AdapterKind, Gpu, MemoryClass, Segment, Ticket, Timeline, TimestampId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Read-backs up to this size take one small segment and the copy kernel.
pub(crate) const SMALL_COPY: usize = 64 << 10;
/// Larger copies go through segments of this size.
const CHUNK: u64 = 8 << 20;
/// How often a lock that is held for some tens of microseconds is tried before the thread sleeps.
const MOST_TRIES: u32 = 1000;
/// Commands that are recorded at once, after all that is pending.
pub(crate) type More<'m> = &'m mut dyn FnMut(&mut Stream) -> Result<(), Error>;
/// Bytes of an address among a kernel's parameters.
const ADDRESS_BYTES: usize = 8;
/// The most ranges of one launch.
const MOST_RANGES: usize = u16::MAX as usize / 2;

/// One GPU, opened. All methods may be called from any thread.
///
/// Work is executed as if in the order of the calls. What a call enqueues may fail later: the error
/// is returned by a later call on the device.
pub struct Device {
    shared: Arc<Shared>,
}

/// What a device and its events share.
pub(crate) struct Shared {
    index: usize,
    // Declared, and so dropped, before the memory that its work uses.
    stream: Mutex<Stream>,
    /// Locked before the stream by whoever needs both.
    state: Mutex<State>,
    timeline: Timeline,
    kernels: KernelCache,
    copy_words: KernelRef,
    pub(crate) fault: FaultBlock,
    pub(crate) slots: Slots,
    pub(crate) staging: HostPool,
    pub(crate) readback_small: HostPool,
    pub(crate) readback_large: HostPool,
    pub(crate) pinned: Pinned,
    pub(crate) generator: Mutex<Generator>,
    /// Joins the launches of graphs.
    pub(crate) joins: Mutex<Fusion>,
    /// Some thread is capturing a graph. Only a hint to look further: what counts is in `state`.
    pub(crate) capturing: AtomicBool,
    submitter: Arc<Submitter>,
    deferred: Deferred,
    lost: AtomicBool,
    gpu: Gpu,
}

/// What the lock of those that enqueue protects.
pub(crate) struct State {
    pub(crate) queue: Queue,
    pub(crate) allocator: Memory,
    /// The most bytes to hold from the driver.
    limit: u64,
    /// The graph that is being captured.
    pub(crate) capture: Option<Box<Capturing>>,
    /// Captures that were begun.
    pub(crate) captures: u64,
}

/// An error of work that nobody waited for, kept for the next call.
#[derive(Default)]
struct Deferred {
    any: AtomicBool,
    first: Mutex<Option<Error>>,
}

struct DeviceMemory<'a>(&'a Gpu);

impl Source for DeviceMemory<'_> {
    type Segment = Arc<Segment>;
    type Error = dml_vulkan::Error;

    fn allocate(&self, bytes: u64) -> Result<Arc<Segment>, dml_vulkan::Error> {
        self.0.allocate(bytes, MemoryClass::Device).map(Arc::new)
    }

    fn address(segment: &Arc<Segment>) -> u64 {
        segment.address()
    }
}

impl Device {
    /// Opens an adapter as a device of its own, beside those of [`device`](crate::device). Each call opens a new one.
    ///
    /// # Errors
    /// What the driver said.
    pub fn open(adapter: &Adapter, index: usize) -> Result<Self, Error> {
        let gpu = adapter.open()?;
        let recorder = gpu.recorder()?;
        let timeline = recorder.timeline().clone();
        let queue = Queue::new(&gpu, timeline.clone())?;
        let stream = Stream::new(recorder, Arc::clone(queue.ring_memory()));
        let kernels = KernelCache::default();
        let copy_words = copy_kernel::copy_words(&kernels, &gpu)?;
        let shared = Arc::new(Shared {
            index,
            timeline,
            stream: Mutex::new(stream),
            state: Mutex::new(State {
                queue,
                allocator: Allocator::new(),
                limit: u64::MAX,
                capture: None,
                captures: 0,
            }),
            slots: Slots::new(&gpu, &kernels)?,
            kernels,
            copy_words,
            fault: FaultBlock::new(&gpu)?,
            staging: HostPool::new(MemoryClass::Staging, CHUNK, 4),
            readback_small: HostPool::new(MemoryClass::Readback, SMALL_COPY as u64 + 8, 64),
            readback_large: HostPool::new(MemoryClass::Readback, CHUNK, 4),
            pinned: Pinned::new(),
            generator: Mutex::default(),
            joins: Mutex::new(Fusion::waiting()),
            capturing: AtomicBool::new(false),
            submitter: Arc::default(),
            deferred: Deferred::default(),
            lost: AtomicBool::new(false),
            gpu,
        });
        Submitter::start(&shared, submits_from_a_thread());
        Ok(Self { shared })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The device's index.
    pub fn index(&self) -> usize {
        self.shared.index
    }

    /// Its adapter.
    pub fn info(&self) -> &AdapterInfo {
        self.shared.gpu.info()
    }

    // ---- memory

    /// Memory for `bytes` bytes: its GPU address, a multiple of 256. 0 bytes are the address 0. The memory holds anything.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] after cached memory was released in vain; [`Error::DeviceLost`].
    #[inline]
    pub fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        if bytes == 0 {
            return Ok(0);
        }
        let shared = &*self.shared;
        shared.alive()?;
        let mut state = shared.lock();
        if state.capture.is_some()
            && let Some(captured) = shared.allocate_captured(&mut state, bytes)
        {
            return captured;
        }
        match state.allocator.take(COMMON, bytes) {
            Some(address) => Ok(address),
            None => shared.grow(&mut state, COMMON, bytes),
        }
    }

    /// Frees memory of [`allocate`](Self::allocate). Work enqueued before may still use it; work enqueued later
    /// may get it again. An address that is not in use is ignored.
    pub fn free(&self, address: u64) {
        if address == 0 {
            return;
        }
        let _stage = measure::enter(Stage::Allocate);
        let mut state = self.shared.lock();
        let State { queue, allocator, capture, .. } = &mut *state;
        let pending = queue.pending() > 0;
        if let Some(capture) = capture {
            capture.freed(address);
        }
        if allocator.free(address, pending || capture.is_some()) {
            // Nobody cares about a free that nothing pending precedes.
            if pending {
                queue.push_free(address);
            }
        } else {
            tracing::error!("free of {address:#x}, which is not in use");
        }
    }

    /// The block in use that `address` lies in: its first address and its bytes.
    pub fn block_range(&self, address: u64) -> Option<(u64, u64)> {
        self.shared.lock().allocator.block(address)
    }

    /// The allocator's statistics.
    pub fn memory_stats(&self) -> MemoryStats {
        self.shared.lock().allocator.stats()
    }

    /// What lies where in the memory held from the driver.
    pub fn memory_snapshot(&self) -> Vec<SegmentInfo> {
        self.shared.lock().allocator.snapshot()
    }

    /// Sets every peak to the current value.
    pub fn reset_peak_stats(&self) {
        self.shared.lock().allocator.stats_mut().reset_peaks();
    }

    /// Sets the counters of all that was ever allocated and freed to 0.
    pub fn reset_accumulated_stats(&self) {
        self.shared.lock().allocator.stats_mut().reset_totals();
    }

    /// Releases cached memory to the driver. Waits for all work.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub fn empty_cache(&self) -> Result<(), Error> {
        let shared = &*self.shared;
        shared.alive()?;
        shared.refuse_in_capture("waiting for the device (to give back cached memory)")?;
        let mut state = shared.lock();
        shared.release(&mut state)
    }

    /// Bytes that the driver says are free, and the device's total. Cached memory counts as not free.
    pub fn memory_info(&self) -> (u64, u64) {
        (self.shared.gpu.memory_free(), self.info().memory_total)
    }

    /// Limits the memory held from the driver to a fraction of the device's total.
    pub fn set_memory_fraction(&self, fraction: f64) {
        let total = self.info().memory_total as f64;
        self.shared.lock().limit = if fraction >= 1.0 { u64::MAX } else { (total * fraction.max(0.0)) as u64 };
    }

    // ---- kernels

    /// The kernel of `key`, built by `build` the first time. Its pipeline is compiled in the background.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the adapter lacks what the kernel needs.
    #[inline]
    pub fn kernel<K: KernelKey>(&self, key: &K, build: impl FnOnce() -> Kernel) -> Result<&KernelRef, Error> {
        let _stage = measure::enter(Stage::Lookup);
        self.shared.kernels.get(&self.shared.gpu, key, || (build(), None))
    }

    /// As [`kernel`](Self::kernel), for a kernel that the queue may join with others if it is told what it computes.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    #[inline]
    pub fn pointwise_kernel<K: KernelKey>(
        &self,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let _stage = measure::enter(Stage::Lookup);
        self.shared.kernels.get(&self.shared.gpu, key, build)
    }

    /// How many kernels there are.
    pub fn kernel_count(&self) -> usize {
        self.shared.kernels.len()
    }

    /// Enqueues a run of a kernel.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`]; [`Error::DeviceLost`]; an error of earlier work, such as
    /// [`Error::IndexOutOfRange`] and [`Error::Compile`].
    #[inline]
    pub fn launch(&self, launch: Launch<'_>) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Enqueue);
        let shared = &*self.shared;
        shared.alive()?;
        shared.validate(&launch)?;
        if launch.kernel.refused() {
            return shared.wrap(launch.kernel.pipeline(&shared.gpu).map(drop));
        }
        if shared.fault.raised() {
            self.check_faults()?;
        }
        if launch.groups.contains(&0) {
            return Ok(());
        }
        let mut state = shared.lock();
        shared.launch(&mut state, &launch)
    }

    // ---- ordering and waiting

    /// Submits everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared.flush()
    }

    /// Waits for everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of that work.
    pub fn synchronize(&self) -> Result<(), Error> {
        let shared = &*self.shared;
        shared.alive()?;
        shared.refuse_in_capture("waiting for the device (synchronize)")?;
        let (flushed, ticket) = shared.submit_for_host(&mut shared.lock(), None);
        shared.wait(ticket)?;
        flushed?;
        self.check_faults()
    }

    /// Whether everything enqueued is done. Does not wait, but submits.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn idle(&self) -> Result<bool, Error> {
        let shared = &*self.shared;
        shared.alive()?;
        shared.refuse_in_capture("asking whether the device is done")?;
        let mut state = shared.lock();
        shared.flush_locked(&mut state)?;
        let idle = state.queue.is_idle();
        shared.wrap(idle)
    }

    /// Marks this place in the queue; with `timing`, also the time at which it is reached.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn record_event(&self, timing: bool) -> Result<Event, Error> {
        let shared = &self.shared;
        shared.alive()?;
        if timing {
            shared.refuse_in_capture("an event for timing")?;
        }
        let event = Event { shared: Arc::clone(shared), state: Arc::new(EventState::new()) };
        let mut state = shared.lock();
        let pending = state.queue.has_pending();
        let ticket = if pending || timing { state.queue.next_ticket() } else { state.queue.last_ticket() };
        event.state.set(ticket);
        if timing {
            state.queue.push_event(Arc::clone(&event.state));
            shared.submitter.enqueued(!pending);
        }
        Ok(event)
    }

    // ---- faults

    /// The address of the fault block: `[code u32, operator id u32, index lo, index hi, size lo, size hi, dim, 0]`.
    /// A kernel that meets a bad index exchanges the code from 0 to 1 atomically and, if it was the
    /// first, writes the rest. The operator id is [`operator_id`](crate::operator_id)'s.
    pub fn fault_address(&self) -> u64 {
        self.shared.fault.give()
    }

    /// Returns the fault that a kernel reported, once. Waits for all work if there is one.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::DeviceLost`].
    #[inline]
    pub fn check_faults(&self) -> Result<(), Error> {
        self.shared.check_faults()
    }

    /// The device's random number generator.
    pub fn generator(&self) -> &Mutex<Generator> {
        &self.shared.generator
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.shared.generator.lock().unwrap_or_else(PoisonError::into_inner).set_seed(seed);
    }

    /// Counters of the queue.
    pub fn queue_stats(&self) -> QueueStats {
        let shared = &*self.shared;
        let QueueStats { commands, waits, .. } = shared.lock().queue.stats;
        QueueStats { commands, waits, ..shared.up_to_date().stats() }
    }

    /// The device was lost.
    pub fn is_lost(&self) -> bool {
        self.shared.lost.load(Ordering::Relaxed) || self.shared.gpu.is_lost()
    }

    /// For tests: every later call returns [`Error::DeviceLost`].
    pub fn simulate_loss(&self) {
        self.shared.gpu.simulate_loss();
        self.shared.lost.store(true, Ordering::Relaxed);
    }

    /// Writes compiled pipelines to disk.
    pub(crate) fn save_pipelines(&self) {
        if let Err(e) = self.shared.gpu.save_pipeline_cache() {
            tracing::debug!("pipeline cache not saved: {e}");
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.shared.submitter.stop();
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("index", &self.index())
            .field("name", &self.info().name)
            .field("lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

/// What is wrong with a launch.
#[cold]
fn invalid_launch(
    launch: &Launch<'_>,
    [given, right]: [usize; 2],
    (fits, max): (bool, [u32; 3]),
    table_fits: bool,
) -> Error {
    Error::InvalidLaunch {
        operator: launch.operator,
        kernel: launch.kernel.name().to_owned(),
        what: if given != right {
            format!("it takes {right} bytes of parameters, not {given}")
        } else if !fits {
            format!("{:?} workgroups, and at most {max:?} are possible", launch.groups)
        } else if !table_fits {
            format!("a table of {} bytes, or too many parameters beside a table", launch.table.len())
        } else {
            format!("more than {MOST_RANGES} ranges")
        },
    }
}

/// Whether a thread records and submits what others enqueue: where it has a processor to itself.
fn submits_from_a_thread() -> bool {
    match std::env::var("TORCH_DML_SUBMIT_THREAD").as_deref() {
        Ok("0") => false,
        Ok("1") => true,
        _ => std::thread::available_parallelism().is_ok_and(|n| n.get() >= 4),
    }
}

impl Deferred {
    /// Keeps an error of work that nobody waits for. The first one counts.
    fn put(&self, error: Error) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    fn take(&self) -> Result<(), Error> {
        if self.any.load(Ordering::Acquire) { self.take_first() } else { Ok(()) }
    }

    #[cold]
    fn take_first(&self) -> Result<(), Error> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        self.any.store(false, Ordering::Release);
        first.take().map_or(Ok(()), Err)
    }
}

impl Shared {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn submitter(&self) -> &Arc<Submitter> {
        &self.submitter
    }

    /// Keeps an error of work that nobody waits for, for the next call.
    pub(crate) fn defer(&self, error: Error) {
        self.deferred.put(error);
    }

    /// The error of work that nobody waited for, once.
    #[inline]
    pub(crate) fn take_deferred(&self) -> Result<(), Error> {
        self.deferred.take()
    }

    pub(crate) fn copy_words(&self) -> &KernelRef {
        &self.copy_words
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.lost.load(Ordering::Relaxed) { Err(self.lost_error()) } else { Ok(()) }
    }

    #[cold]
    fn lost_error(&self) -> Error {
        Error::DeviceLost { device: self.index, adapter: self.gpu.info().name.clone() }
    }

    /// As [`Device::check_faults`].
    #[inline]
    pub(crate) fn check_faults(&self) -> Result<(), Error> {
        if self.fault.raised() { self.raise_fault() } else { Ok(()) }
    }

    /// Waits for all work, and returns the fault that a kernel reported.
    #[cold]
    pub(crate) fn raise_fault(&self) -> Result<(), Error> {
        // Locked until the report is taken: nobody else takes it too, and no new work writes another meanwhile.
        let mut state = self.lock();
        self.drain_locked(&mut state)?;
        self.fault.take()
    }

    /// Notes the loss of the device.
    pub(crate) fn wrap<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T, Error> {
        result.map_err(|e| match e.into() {
            Error::Vulkan(dml_vulkan::Error::DeviceLost) => {
                self.lost.store(true, Ordering::Relaxed);
                self.lost_error()
            }
            other => other,
        })
    }

    #[inline]
    fn validate(&self, launch: &Launch<'_>) -> Result<(), Error> {
        let tabled = !launch.table.is_empty();
        let given = launch.params.len() + if tabled { ADDRESS_BYTES } else { 0 };
        let table_fits = !tabled || launch.table.len() as u64 <= MOST_RING_BYTES && !launch.kernel.spilled();
        let max = self.gpu.info().capabilities.max_groups;
        let fits = launch.groups[0] <= max[0] && launch.groups[1] <= max[1] && launch.groups[2] <= max[2];
        let right = launch.kernel.param_bytes() as usize;
        if given == right && fits && table_fits && launch.reads.len().max(launch.writes.len()) <= MOST_RANGES {
            return Ok(());
        }
        Err(invalid_launch(launch, [given, right], (fits, max), table_fits))
    }

    /// Enqueues a valid launch.
    #[inline]
    pub(crate) fn launch(&self, state: &mut State, launch: &Launch<'_>) -> Result<(), Error> {
        self.take_deferred()?;
        if state.capture.is_some() && self.capture_launch(state, launch)? {
            return Ok(());
        }
        if launch.kernel.spilled() {
            let (_, address) = self.write_ring(state, launch.params)?;
            state.queue.push_launch(launch, [&address.to_ne_bytes(), &[]]);
        } else if !launch.table.is_empty() {
            let (_, address) = self.write_ring(state, launch.table)?;
            state.queue.push_launch(launch, [&address.to_ne_bytes(), launch.params]);
        } else {
            state.queue.push_launch(launch, [&[], launch.params]);
        }
        // A GPU that had nothing to do for long begins at once. Not with a kernel that the host would have to wait for.
        if self.submitter.enqueued(state.queue.pending() == 1) && launch.kernel.is_compiled() {
            // An error is a later call's, as when another thread submits.
            if let Err(e) = self.flush_locked(state) {
                self.alive()?;
                self.defer(e);
            }
            return Ok(());
        }
        self.follow_policy(state)
    }

    /// Copies bytes into the ring, waiting for room if there is none. Returns the offset and the GPU address.
    /// At most [`MOST_RING_BYTES`].
    pub(crate) fn write_ring(&self, state: &mut State, data: &[u8]) -> Result<(u64, u64), Error> {
        loop {
            if let Some(place) = state.queue.write_ring(data) {
                return Ok(place);
            }
            match state.queue.oldest_in_ring() {
                Some(ticket) => {
                    drop(self.up_to_date());
                    self.wrap(self.timeline.wait(ticket))?;
                    state.queue.completed(ticket);
                }
                // All of it belongs to entries that are pending.
                None => self.flush_locked(state)?,
            }
        }
    }

    /// After a command was appended to the queue.
    pub(crate) fn enqueued(&self, state: &mut State) -> Result<(), Error> {
        self.submitter.enqueued(state.queue.pending() == 1);
        self.follow_policy(state)
    }

    #[inline]
    fn follow_policy(&self, state: &mut State) -> Result<(), Error> {
        let due = state.queue.is_due();
        self.hand_over_if(state, due)
    }

    /// After a run of a graph of `launches` commands was appended to the queue.
    pub(crate) fn enqueued_replay(&self, state: &mut State, launches: u32) -> Result<(), Error> {
        self.submitter.enqueued(state.queue.pending() == launches);
        let due = state.queue.is_due_after(launches);
        self.hand_over_if(state, due)
    }

    #[inline]
    fn hand_over_if(&self, state: &mut State, due: Result<bool, Error>) -> Result<(), Error> {
        match due {
            Ok(false) => Ok(()),
            due => self.hand_over(state, due),
        }
    }

    /// Leaves the pending batch to the thread that submits, or submits it here if that has too much to do.
    fn hand_over(&self, state: &mut State, due: Result<bool, Error>) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Submit);
        self.wrap(due)?;
        if !self.submitter.has_room() {
            return self.flush_locked(state);
        }
        self.leave(state);
        self.submitter.wake();
        Ok(())
    }

    /// Leaves the pending batch to the thread that submits.
    fn leave(&self, state: &mut State) {
        let batch = self.take(state);
        self.submitter.put(batch);
    }

    /// Ends the pending batch.
    fn take(&self, state: &mut State) -> Batch {
        self.submitter.taken();
        state.queue.take(self.submitter.spare(), &mut state.allocator)
    }

    /// The thread's: records and submits what was handed over.
    pub(crate) fn record_handed(&self) {
        let mut stream = self.stream();
        while let Some(batch) = self.submitter.next() {
            measure::beside(batch.commands, || self.submit_handed(&mut stream, batch));
        }
    }

    /// Whether the thread that submits may keep its processor busy: not where the driver computes on it.
    pub(crate) fn spins(&self) -> bool {
        self.gpu.info().kind != AdapterKind::Software
    }

    /// The stream, which another thread holds for some tens of microseconds at most, compiling apart.
    fn stream(&self) -> MutexGuard<'_, Stream> {
        for _ in 0..MOST_TRIES {
            match self.stream.try_lock() {
                Ok(stream) => return stream,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream, with all that was handed over recorded and submitted.
    pub(crate) fn up_to_date(&self) -> MutexGuard<'_, Stream> {
        let mut stream = self.stream();
        while let Some(batch) = self.submitter.next() {
            self.submit_handed(&mut stream, batch);
        }
        stream
    }

    /// Records and submits a batch that was handed over. An error is kept for the next call.
    fn submit_handed(&self, stream: &mut Stream, batch: Batch) {
        let recorded = stream.record(&self.gpu, &batch);
        let submitted = stream.submit(batch.ticket);
        self.submitter.recorded(batch);
        if let Err(e) = self.wrap(recorded.and(submitted)) {
            self.defer(e);
        }
    }

    /// Records and submits all that is pending, then `more`, as one submission. With `for_host`, what was written to mapped memory
    /// is visible when it is done. Returns its ticket, or with nothing to submit the last one.
    fn submit(&self, state: &mut State, for_host: bool, more: Option<More<'_>>) -> (Result<(), Error>, Ticket) {
        let mut stream = self.up_to_date();
        if !state.queue.has_pending() && more.is_none() && (!for_host || stream.is_host_visible()) {
            return (self.take_deferred(), state.queue.last_ticket());
        }
        let batch = self.take(state);
        let recorded = stream.record(&self.gpu, &batch);
        let more = more.map_or(Ok(()), |more| more(&mut stream));
        if for_host {
            stream.host_barrier();
        }
        let submitted = stream.submit(batch.ticket);
        let ticket = batch.ticket;
        drop(stream);
        self.submitter.recorded(batch);
        let result = self.wrap(recorded.and(more).and(submitted));
        (self.take_deferred().and(result), ticket)
    }

    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.alive()?;
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
        state.queue.waits();
        self.submit(state, true, more)
    }

    /// Submits everything enqueued and `more` after it for a host that is about to poll for what `more` writes.
    pub(crate) fn submit_polled(&self, state: &mut State, more: More<'_>) -> (Result<(), Error>, Ticket) {
        state.queue.waits();
        self.submit(state, false, Some(more))
    }

    /// The thread's: submits what is pending, and keeps an error for the next call.
    ///
    /// A device that has work gets more only if it `must`.
    pub(crate) fn flush_idle(&self, must: bool) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if state.queue.has_pending() {
            // An error is found again by whoever records.
            if !must && matches!(state.queue.is_idle(), Ok(false)) {
                return;
            }
            self.leave(&mut state);
        } else {
            self.submitter.taken();
        }
        drop(state);
        self.record_handed();
    }

    /// Waits for a ticket, without the lock.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.wrap(self.timeline.wait(ticket))?;
        self.completed(ticket);
        Ok(())
    }

    /// All commands up to `ticket` are done.
    pub(crate) fn completed(&self, ticket: Ticket) {
        self.lock().queue.completed(ticket);
        // A thread that records meanwhile will not miss it.
        if let Ok(mut stream) = self.stream.try_lock() {
            stream.completed(ticket);
        }
    }

    /// Submits what `ticket` stands for, if that was not done.
    pub(crate) fn ensure_submitted(&self, ticket: Ticket) -> Result<(), Error> {
        if self.timeline.last_ticket() >= ticket {
            return Ok(());
        }
        self.flush()?;
        self.alive()
    }

    pub(crate) fn timestamps(&self, a: &TimestampId, b: &TimestampId) -> Result<(Option<u64>, Option<u64>), Error> {
        let mut stream = self.stream();
        let recorder = stream.recorder();
        let both = recorder.timestamp_ns(a).and_then(|a| Ok((a, recorder.timestamp_ns(b)?)));
        self.wrap(both)
    }

    /// Waits until the driver, too, is done with all work. An error of that work is kept for the next call.
    pub(crate) fn drain(&self) -> Result<(), Error> {
        if let Err(e) = self.drain_locked(&mut self.lock()) {
            self.alive()?;
            self.defer(e);
        }
        Ok(())
    }

    /// Submits everything, and waits until the driver, too, is done with every segment.
    pub(crate) fn drain_locked(&self, state: &mut State) -> Result<(), Error> {
        let (flushed, ticket) = self.submit_for_host(state, None);
        let mut stream = self.stream();
        self.wrap(stream.recorder().wait_idle())?;
        state.queue.completed(ticket);
        stream.completed(ticket);
        flushed
    }

    /// Drains the queue and gives cached segments back to the driver.
    fn release(&self, state: &mut State) -> Result<(), Error> {
        let drained = self.drain_locked(state);
        if !self.lost.load(Ordering::Relaxed) {
            drop(state.allocator.release());
            self.staging.clear_done(&self.timeline);
            self.readback_large.clear_done(&self.timeline);
        }
        drained
    }

    /// The slow way of `allocate`: a new segment, if need be after the cached ones were released.
    #[cold]
    pub(crate) fn grow(&self, state: &mut State, pool: u32, bytes: u64) -> Result<u64, Error> {
        let most = self.gpu.largest_segment();
        if bytes > most {
            state.allocator.stats_mut().ooms += 1;
            let advice = format!("This driver allocates at most {} at once.", crate::error::Bytes(most));
            return Err(self.out_of_memory(state, bytes, advice));
        }
        let source = DeviceMemory(&self.gpu);
        let limit = state.limit;
        for attempt in 0..3 {
            if attempt == 1 {
                state.allocator.stats_mut().alloc_retries += 1;
                // An error of pending work is not this call's: keep it.
                if let Err(e) = self.release(state) {
                    self.alive()?;
                    self.defer(e);
                }
                if let Some(address) = state.allocator.take(pool, bytes) {
                    return Ok(address);
                }
            }
            match state.allocator.grow(&source, pool, bytes, limit, attempt == 2) {
                Ok(address) => return Ok(address),
                Err(GrowError::Limit | GrowError::Source(dml_vulkan::Error::OutOfMemory { .. })) => {}
                Err(GrowError::Source(e)) => return self.wrap(Err(e)),
            }
        }
        state.allocator.stats_mut().ooms += 1;
        let advice = if state.limit == u64::MAX {
            "Smaller batches need less; torch.dml.empty_cache() returns what is reserved but unused.".to_owned()
        } else {
            format!("This process limits itself to {}.", crate::error::Bytes(state.limit))
        };
        Err(self.out_of_memory(state, bytes, advice))
    }

    fn out_of_memory(&self, state: &State, requested: u64, advice: String) -> Error {
        let stats = state.allocator.stats();
        Error::OutOfMemory {
            requested,
            allocated: stats.all.allocated_bytes.current,
            reserved: stats.all.reserved_bytes.current,
            free: self.gpu.memory_free(),
            total: self.gpu.info().memory_total,
            device: self.index,
            adapter: self.gpu.info().name.clone(),
            advice,
        }
    }
}

impl Drop for Shared {
    /// Segments are freed after this: nothing may use them any more.
    fn drop(&mut self) {
        if let Err(e) = self.drain_locked(&mut self.lock()) {
            tracing::debug!("closing device {}: {e}", self.index);
        }
    }
}
