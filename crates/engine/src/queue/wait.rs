//! Waiting for the device.

use crate::error::Error;
use crate::queue::device_queue::{DeviceQueue, State};
use crate::submit::submission::Visibility;
use dml_gpu::Ticket;
use std::sync::MutexGuard;

impl DeviceQueue {
    /// Waits for a ticket. The calling thread may hold no lock.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.submission.wait(ticket)?;
        self.retire(ticket);
        Ok(())
    }

    /// All commands up to `ticket` are complete, and the host has waited for them.
    pub(crate) fn retire(&self, ticket: Ticket) {
        self.lock().pending.retire(ticket);
        self.submission.retire(ticket);
    }

    /// Waits for everything enqueued.
    ///
    /// # Errors
    /// [`Error::Graph`] in a capture; [`Error::Interrupted`]; [`Error::DeviceLost`], or an error of
    /// that work.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.refuse_in_capture("waiting for the device (synchronize)")?;
        self.synchronize_work()?;
        self.check_faults()
    }

    /// Submits everything enqueued, and waits for it with nothing locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`], or an error of that work.
    fn synchronize_work(&self) -> Result<(), Error> {
        self.prepare_wait()?;
        let (flushed, ticket) = self.flush_to_wait(&mut self.lock(), Visibility::Host, None);
        self.wait(ticket)?;
        flushed
    }

    /// Waits for everything enqueued with nothing locked, and then locks the queue: for a caller
    /// that [drains](Self::drain_locked) it, which waits with the queue locked. An error of pending
    /// work is deferred to the next call.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(super) fn synchronize_and_lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        match self.synchronize_work() {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            other => self.defer(other)?,
        }
        Ok(self.lock())
    }

    /// Waits until the driver, too, is done with all work. An error of that work is deferred to the
    /// next call.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`].
    pub(crate) fn drain(&self) -> Result<(), Error> {
        let drained = self.drain_locked(&mut *self.synchronize_and_lock()?);
        self.defer(drained)
    }

    /// Submits everything, and waits until the driver, too, is done with every segment. It is not
    /// counted as a wait: a caller that can [synchronizes](Self::synchronize_and_lock) before,
    /// which is.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(super) fn drain_locked(&self, state: &mut State) -> Result<(), Error> {
        let (flushed, ticket) = self.flush_with(state, Visibility::Host, None);
        self.submission.wait_idle(ticket)?;
        state.pending.retire(ticket);
        flushed
    }

    /// Whether everything enqueued is complete. Does not wait, but submits.
    ///
    /// # Errors
    /// [`Error::Graph`] in a capture; [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn is_idle(&self) -> Result<bool, Error> {
        self.submission.alive()?;
        self.refuse_in_capture("asking whether the device is done")?;
        let mut state = self.lock();
        self.flush_locked(&mut state)?;
        let idle = state.pending.is_idle();
        self.submission.check(idle)
    }

    /// For the end of the process: waits for what the driver was given, and leaves the rest alone,
    /// which nobody misses. A later call on the device still runs the rest.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.submission.handover().stop();
        self.submission.alive()?;
        self.submission.wait_submitted()
    }

    /// Defers an error of pending work, which is not this call's, to the next call.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(super) fn defer(&self, result: Result<(), Error>) -> Result<(), Error> {
        if let Err(e) = result {
            self.submission.alive()?;
            self.submission.defer(e);
        }
        Ok(())
    }
}
