//! One device's work from the moment its batch has ended: the stream, its timeline, what failed,
//! and whether the device was lost.

use crate::backend::{Gpu, Timeline, TimestampId};
use crate::error::Error;
use crate::exit;
use crate::interrupt;
use crate::profile::activity::Activity;
use crate::profile::measure;
use crate::submit::batch::Batch;
use crate::submit::errors::{Deferred, Errors};
use crate::submit::handover::Handover;
use crate::submit::run_ahead::{RunAhead, Seen};
use crate::submit::statistics::QueueStats;
use crate::submit::stream::Stream;
use crate::threads::ThreadNumber;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// How often a lock that is held for some tens of microseconds is tried before the thread sleeps.
const MAX_TRIES: u32 = 1000;
/// Commands that are recorded at once, after all that is pending.
pub(crate) type More<'m> = &'m mut dyn FnMut(&mut Stream) -> Result<(), Error>;

/// The lower half of a device's queue.
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

    /// What goes to the thread that submits.
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

    /// As much is in flight as may be, or was a moment ago.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.run_ahead.is_full()
    }

    /// Whether the driver may be given more. A device that was lost has room: who submits finds
    /// out.
    pub(crate) fn has_room(&self) -> bool {
        self.timeline.completed().map_or(true, |completed| self.run_ahead.has_room(completed, Seen::Later))
    }

    /// Waits until the driver may be given more. Nothing of the engine may be locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn await_room(&self) -> Result<(), Error> {
        let mut seen = Seen::Later;
        let look = |completed| self.run_ahead.has_room(completed, std::mem::replace(&mut seen, Seen::AtOnce));
        interrupt::unless(self.wrap(self.timeline.look_until(look, interrupt::requested))?)
    }

    /// A batch was submitted.
    fn submitted(&self, ticket: Ticket, commands: u32) {
        self.run_ahead.submitted(ticket, commands, self.timeline.completed().unwrap_or_default());
    }

    // ---- loss and errors

    /// Fails if the loss of the device was noted.
    #[inline]
    pub(crate) fn alive(&self) -> Result<(), Error> {
        if self.lost.load(Ordering::Relaxed) { Err(self.lost_error()) } else { Ok(()) }
    }

    /// Whether the loss of the device was noted.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Notes the loss of the device.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        exit::without_drivers();
    }

    #[cold]
    fn lost_error(&self) -> Error {
        Error::DeviceLost { device: self.device, adapter: self.gpu.info().name.clone() }
    }

    /// Notes the loss of the device, if that is what a call found.
    pub(crate) fn wrap<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T, Error> {
        result.map_err(|e| self.noted(e.into()))
    }

    fn noted(&self, error: Error) -> Error {
        match error {
            Error::Gpu(dml_gpu::Error::DeviceLost) => {
                self.lose();
                self.lost_error()
            }
            other => other,
        }
    }

    /// Keeps an error of the calling thread's work, that nobody waits for, for its next call.
    pub(crate) fn defer(&self, error: Error) {
        let mut errors = Errors::default();
        errors.note(ThreadNumber::here(), Err(error));
        self.deferred.put(errors);
    }

    /// The error of the calling thread's work that nobody waited for, once; or that of a thread
    /// that has ended.
    #[inline]
    pub(crate) fn take_deferred(&self) -> Result<(), Error> {
        self.deferred.take()
    }

    // ---- recording

    /// The stream, which another thread holds for some tens of microseconds at most, compiling
    /// apart.
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

    /// The stream, with all that was handed over recorded and submitted.
    pub(crate) fn up_to_date(&self) -> MutexGuard<'_, Stream> {
        let mut stream = self.stream();
        while let Some(batch) = self.handover.next() {
            self.submit_handed(&mut stream, batch);
        }
        stream
    }

    /// Records and submits what was handed over, as far as there is room for it and until `stop` is
    /// true. Kernels that are still being compiled are waited for with nothing locked.
    pub(crate) fn record_handed(&self, stop: impl Fn() -> bool) {
        while !stop() && self.handover.has_batches() && self.has_room() {
            match self.handover.uncompiled() {
                Some(kernel) => kernel.compile(&self.gpu),
                None => self.record_next(),
            }
        }
    }

    /// As [`record_handed`](Self::record_handed), for a thread that is about to wait.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn record_handed_to_wait(&self) -> Result<(), Error> {
        while self.handover.has_batches() && self.has_room() {
            match self.handover.uncompiled() {
                Some(kernel) => kernel.await_compiled(&self.gpu)?,
                None => self.record_next(),
            }
        }
        Ok(())
    }

    /// Records and submits the oldest batch that was handed over, if another thread has not.
    fn record_next(&self) {
        let mut stream = self.stream();
        if let Some(batch) = self.handover.next() {
            measure::beside(batch.commands, || self.submit_handed(&mut stream, batch));
        }
    }

    /// Records and submits a batch that was handed over. An error is kept for the next call.
    fn submit_handed(&self, stream: &mut Stream, batch: Batch) {
        let errors = stream.record(&self.gpu, &batch);
        let submitted = stream.submit(batch.ticket, batch.work);
        self.defer_of(&batch, errors, submitted);
        self.submitted(batch.ticket, batch.commands);
        self.handover.recorded(batch);
    }

    /// Keeps the errors of a batch for the next calls of those who enqueued it.
    fn defer_of(&self, batch: &Batch, mut errors: Errors, submitted: Result<(), Error>) {
        errors.note_for(batch.entries.iter().map(|entry| entry.thread), submitted);
        self.deferred.put(errors.map(|e| self.noted(e)));
    }

    /// Records and submits a batch, then `more`, as one submission, after [all that was handed
    /// over](Self::up_to_date). With `for_host`, what was written to mapped memory is visible when
    /// it is done. Returns also what nobody waited for.
    pub(crate) fn submit(
        &self,
        mut stream: MutexGuard<'_, Stream>,
        batch: Batch,
        for_host: bool,
        more: Option<More<'_>>,
    ) -> Result<(), Error> {
        let errors = stream.record(&self.gpu, &batch);
        let more = more.map_or(Ok(()), |more| more(&mut stream));
        if for_host {
            stream.host_barrier();
        }
        let submitted = stream.submit(batch.ticket, batch.work);
        self.defer_of(&batch, errors, submitted);
        self.submitted(batch.ticket, batch.commands);
        drop(stream);
        self.handover.recorded(batch);
        let more = self.wrap(more);
        self.take_deferred().and(more)
    }

    // ---- waiting

    /// Waits for what the driver was given, and what a thread is about to give it.
    pub(crate) fn wait_submitted(&self) -> Result<(), Error> {
        drop(self.stream());
        self.wait(self.timeline.last_ticket())
    }

    /// Waits for a ticket. Nothing of the engine may be locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        interrupt::unless(self.wrap(self.timeline.wait_unless(ticket, interrupt::requested))?)
    }

    /// Waits for a ticket, whatever happens: where something is locked. Not for what others may
    /// have enqueued without bound.
    pub(crate) fn wait_locked(&self, ticket: Ticket) -> Result<(), Error> {
        self.wrap(self.timeline.wait(ticket))
    }

    /// All commands up to `ticket` are done, and the host has waited for them.
    pub(crate) fn completed(&self, ticket: Ticket) {
        // A thread that records meanwhile will not miss it.
        if let Ok(mut stream) = self.stream.try_lock() {
            stream.completed(ticket);
        }
    }

    /// Waits until the driver, too, is done with everything, of which `ticket` is the last.
    pub(crate) fn wait_idle(&self, ticket: Ticket) -> Result<(), Error> {
        let mut stream = self.stream();
        self.wrap(stream.wait_idle())?;
        stream.completed(ticket);
        Ok(())
    }

    /// Nanoseconds from one timestamp to another, as [`Stream::elapsed_ns`].
    pub(crate) fn elapsed_ns(&self, from: &TimestampId, to: &TimestampId) -> Result<Option<f64>, Error> {
        self.wrap(self.stream().elapsed_ns(from, to))
    }

    /// What the stream counts.
    pub(crate) fn stats(&self) -> QueueStats {
        self.up_to_date().stats()
    }

    // ---- profiling, with the device idle

    pub(crate) fn start_profile(&self) -> Result<(), Error> {
        self.wrap(self.up_to_date().start_profile())
    }

    pub(crate) fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        self.wrap(self.up_to_date().stop_profile(self.device))
    }
}
