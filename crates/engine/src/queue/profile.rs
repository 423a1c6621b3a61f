//! What the queue counts, and the profile of what runs on the device.

use crate::error::Error;
use crate::profile::activity::Activity;
use crate::queue::device_queue::DeviceQueue;
use crate::submit::statistics::QueueStats;

impl DeviceQueue {
    /// The counters of the queue.
    pub(crate) fn stats(&self) -> QueueStats {
        let QueueStats { commands, waits, .. } = self.lock().pending.stats();
        QueueStats { commands, waits, ..self.submission.stats() }
    }

    /// Waits for the device, and profiles what runs on it from then on.
    ///
    /// # Errors
    /// [`dml_gpu::Error::Unsupported`] without timestamps; [`Error::DeviceLost`]; an error of
    /// earlier work.
    pub(crate) fn start_profile(&self) -> Result<(), Error> {
        self.submission.alive()?;
        let mut state = self.synchronize_and_lock()?;
        self.drain_locked(&mut state)?;
        // Without calibrated timestamps, the driver's clock is read by a submission.
        let started = self.submission.start_profile();
        state.pending.follow_timeline();
        started?;
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
        let activities = self.submission.stop_profile();
        state.pending.follow_timeline();
        self.submission.alive()?;
        self.defer(drained)?;
        activities
    }
}
