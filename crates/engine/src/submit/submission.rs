//! The back half of a device's queue: the stream with its lock, the timeline, deferred errors, and
//! whether the device was lost.

use crate::backend::{Gpu, Timeline, TimestampId};
use crate::error::Error;
use crate::exit;
use crate::interrupt;
use crate::profile::activity::Activity;
use crate::profile::measure;
use crate::submit::batch::{EndedBatch, SubmittedBatch};
use crate::submit::errors::{Deferred, Errors};
use crate::submit::handover::Handover;
use crate::submit::ordered::OrderedRecorder;
use crate::submit::run_ahead::{RunAhead, Seen};
use crate::submit::statistics::QueueStats;
use crate::submit::stream::Stream;
use crate::threads::ThreadNumber;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// How often the stream's lock, which is held for some tens of microseconds, is tried before the
/// thread sleeps.
const MAX_TRIES: u32 = 1000;

/// Who is to see what a submission wrote to mapped memory, when it is complete.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Later commands of the device.
    Device,
    /// The host, too, for which there is a barrier. A host that polls for words does without.
    Host,
}

/// Commands that are recorded at once, after all that is pending.
pub(crate) type More<'m> = &'m mut dyn FnMut(&mut OrderedRecorder) -> Result<(), Error>;

/// The back half of a device's queue. The front half is the
/// [`DeviceQueue`](crate::queue::device_queue::DeviceQueue).
pub(crate) struct Submission {
    /// The device's index.
    device: usize,
    stream: Mutex<Stream>,
    timeline: Timeline,
    handover: Arc<Handover>,
    run_ahead: RunAhead,
    deferred: Deferred,
    lost: AtomicBool,
    gpu: Gpu,
}

impl Submission {
    pub(crate) fn new(gpu: Gpu, device: usize, stream: Stream, timeline: Timeline) -> Self {
        Self {
            device,
            stream: Mutex::new(stream),
            timeline,
            handover: Arc::default(),
            run_ahead: RunAhead::new(),
            deferred: Deferred::default(),
            lost: AtomicBool::new(false),
            gpu,
        }
    }

    /// The device's index.
    pub(crate) fn device(&self) -> usize {
        self.device
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The mailbox of the submission thread.
    #[inline]
    pub(crate) fn handover(&self) -> &Arc<Handover> {
        &self.handover
    }

    // ---- how much may be in flight

    /// Commands that one batch should have at most.
    #[inline]
    pub(crate) fn batch_limit(&self) -> u32 {
        self.run_ahead.batch()
    }

    /// Whether as much is in flight as may be, or was a moment ago.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.run_ahead.is_full()
    }

    /// Whether the driver may be given more. A device that was lost has room: the submission finds
    /// the loss.
    pub(crate) fn has_room(&self) -> bool {
        self.timeline.completed().map_or(true, |completed| self.run_ahead.has_room(completed, Seen::Later))
    }

    /// Waits until the driver may be given more. The calling thread may hold no lock.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn throttle(&self) -> Result<(), Error> {
        let mut seen = Seen::Later;
        let look = |completed| self.run_ahead.has_room(completed, std::mem::replace(&mut seen, Seen::AtOnce));
        interrupt::unless(self.check(self.timeline.look_until(look, interrupt::requested))?)
    }

    /// Accounts for a batch that was submitted: its errors are deferred, and its commands are in
    /// flight.
    fn account(&self, batch: &mut SubmittedBatch) {
        self.deferred.put(batch.take_errors().map(|e| self.check_error(e)));
        self.run_ahead.submitted(batch.ticket(), batch.count(), self.timeline.completed().unwrap_or_default());
    }

    // ---- loss and errors

    /// Fails if the device is known to be lost.
    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.lost.load(Ordering::Relaxed) { Err(self.lost_error()) } else { Ok(()) }
    }

    /// Whether the device is known to be lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Remembers that the device was lost.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        exit::without_drivers();
    }

    #[cold]
    fn lost_error(&self) -> Error {
        Error::DeviceLost { device: self.device, adapter: self.gpu.info().name.clone() }
    }

    /// Passes a result on. If it says that the device was lost, that is remembered.
    pub(crate) fn check<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T, Error> {
        result.map_err(|e| self.check_error(e.into()))
    }

    fn check_error(&self, error: Error) -> Error {
        match error {
            Error::Gpu(dml_gpu::Error::DeviceLost) => {
                self.lose();
                self.lost_error()
            }
            other => other,
        }
    }

    /// Keeps an error of the calling thread's work, for which nobody waits, for the thread's next
    /// call.
    pub(crate) fn defer(&self, error: Error) {
        let mut errors = Errors::default();
        errors.add(ThreadNumber::here(), Err(error));
        self.deferred.put(errors);
    }

    /// Fails with the deferred error of the calling thread, once; or with that of a thread that has
    /// ended.
    #[inline]
    pub(crate) fn take_deferred(&self) -> Result<(), Error> {
        self.deferred.take()
    }

    // ---- recording

    /// Locks the stream. Another thread holds the lock for some tens of microseconds at most,
    /// unless it compiles.
    fn stream(&self) -> MutexGuard<'_, Stream> {
        for _ in 0..MAX_TRIES {
            match self.stream.try_lock() {
                Ok(stream) => return stream,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the stream, and records and submits all that was handed over.
    pub(crate) fn catch_up(&self) -> MutexGuard<'_, Stream> {
        let mut stream = self.stream();
        while let Some(batch) = self.handover.receive() {
            self.submit_batch(&mut stream, batch);
        }
        stream
    }

    /// Records and submits what was handed over, as long as there is room in flight and until
    /// `stop` is true. Kernels that are still being compiled are waited for with nothing locked.
    pub(crate) fn submit_handed_over(&self, stop: impl Fn() -> bool) {
        while !stop() && self.handover.has_batches() && self.has_room() {
            match self.handover.uncompiled() {
                Some(kernel) => kernel.compile(&self.gpu),
                None => self.submit_next(),
            }
        }
    }

    /// As [`submit_handed_over`](Self::submit_handed_over), for a thread that is about to wait.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn submit_handed_over_to_wait(&self) -> Result<(), Error> {
        while self.handover.has_batches() && self.has_room() {
            match self.handover.uncompiled() {
                Some(kernel) => kernel.await_compiled(&self.gpu)?,
                None => self.submit_next(),
            }
        }
        Ok(())
    }

    /// Records and submits the oldest batch that was handed over, unless another thread has done
    /// it.
    fn submit_next(&self) {
        let mut stream = self.stream();
        if let Some(batch) = self.handover.receive() {
            measure::background(batch.commands().count(), || self.submit_batch(&mut stream, batch));
        }
    }

    /// Records and submits a batch that was handed over. Errors are deferred.
    fn submit_batch(&self, stream: &mut Stream, batch: EndedBatch) {
        let recorded = stream.record(&self.gpu, batch);
        let mut submitted = stream.submit(recorded);
        self.account(&mut submitted);
        self.handover.recycle(submitted);
    }

    /// Records and submits a batch, then `more`, as one submission, after [all that was handed
    /// over](Self::catch_up). Returns also deferred errors of the calling thread.
    pub(crate) fn submit(
        &self,
        mut stream: MutexGuard<'_, Stream>,
        batch: EndedBatch,
        visibility: Visibility,
        more: Option<More<'_>>,
    ) -> Result<(), Error> {
        let recorded = stream.record(&self.gpu, batch);
        let more = more.map_or(Ok(()), |more| more(&mut stream.recorder));
        if visibility == Visibility::Host {
            stream.recorder.host_barrier();
        }
        let mut submitted = stream.submit(recorded);
        self.account(&mut submitted);
        drop(stream);
        self.handover.recycle(submitted);
        let more = self.check(more);
        self.take_deferred().and(more)
    }

    // ---- waiting

    /// Waits for what the driver was given, and for what a thread is giving it now.
    pub(crate) fn wait_submitted(&self) -> Result<(), Error> {
        drop(self.stream());
        self.wait(self.timeline.last_ticket())
    }

    /// Waits for a ticket. The calling thread may hold no lock.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        interrupt::unless(self.check(self.timeline.wait_unless(ticket, interrupt::requested))?)
    }

    /// Waits for a ticket without asking for interruptions: for a caller that holds a lock. Not for
    /// work that other threads may have enqueued without bound.
    pub(crate) fn wait_uninterrupted(&self, ticket: Ticket) -> Result<(), Error> {
        self.check(self.timeline.wait(ticket))
    }

    /// All commands up to `ticket` are complete, and the host has waited for them.
    pub(crate) fn retire(&self, ticket: Ticket) {
        // A thread that records meanwhile does not need to know.
        if let Ok(mut stream) = self.stream.try_lock() {
            stream.recorder.retire(ticket);
        }
    }

    /// Waits until the driver, too, is done with everything up to `ticket`, the last one.
    pub(crate) fn wait_idle(&self, ticket: Ticket) -> Result<(), Error> {
        let mut stream = self.stream();
        self.check(stream.recorder.wait_idle())?;
        stream.recorder.retire(ticket);
        Ok(())
    }

    /// Nanoseconds from one timestamp to another, as [`OrderedRecorder::elapsed_ns`].
    pub(crate) fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        self.check(self.stream().recorder.elapsed_ns(from, to))
    }

    /// The counters of the stream: all but commands and waits.
    pub(crate) fn stats(&self) -> QueueStats {
        self.catch_up().recorder.stats()
    }

    // ---- profiling, with the device idle

    pub(crate) fn start_profile(&self) -> Result<(), Error> {
        self.check(self.catch_up().recorder.start_profile())
    }

    pub(crate) fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        self.check(self.catch_up().recorder.stop_profile(self.device))
    }
}
