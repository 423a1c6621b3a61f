//! Events: a position in a device's queue, with the time at which it was reached if wanted.

use crate::commands::marker::Marker;
use crate::error::Error;
use crate::fork;
use crate::queue::device_queue::DeviceQueue;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::Arc;
use std::time::Instant;

/// A position in a device's queue, after everything enqueued before it.
#[derive(Clone)]
pub struct Event {
    queue: Arc<DeviceQueue>,
    marker: Arc<Marker>,
    /// When it was reached by the host's clock, if it was recorded for timing where the queue has
    /// no timestamps.
    reached: Option<Instant>,
}

impl Event {
    /// Marks the end of the enqueued commands; with `timing`, also the time at which it is reached,
    /// for which this waits where the queue has no timestamps.
    ///
    /// # Errors
    /// As [`Device::record_event`](crate::Device::record_event).
    pub(crate) fn record(queue: &Arc<DeviceQueue>, timing: bool) -> Result<Self, Error> {
        let stamped = timing && queue.gpu().info().capabilities.timestamp_period_ns > 0.0;
        let mut event = Self { queue: Arc::clone(queue), marker: Arc::new(Marker::default()), reached: None };
        if timing {
            queue.refuse_in_capture("an event for timing")?;
        }
        queue.mark(&event.marker, stamped)?;
        if timing && !stamped {
            event.wait()?;
            event.reached = Some(Instant::now());
        }
        Ok(event)
    }

    /// The device's index.
    pub fn device_index(&self) -> usize {
        self.queue.device()
    }

    /// The ticket; submits the work before the event if that was not done.
    fn ticket(&self) -> Result<Ticket, Error> {
        fork::check()?;
        self.queue.refuse_in_capture("asking or waiting for an event")?;
        let ticket = self.marker.ticket();
        self.queue.flush_up_to(ticket)?;
        Ok(ticket)
    }

    /// The ticket up to which the device says that everything is done.
    fn completed(&self) -> Result<Ticket, Error> {
        let submission = &self.queue.submission;
        submission.check(submission.timeline().completed())
    }

    /// Whether everything before the event is done. Does not wait.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of work that was pending.
    pub fn query(&self) -> Result<bool, Error> {
        let ticket = self.ticket()?;
        // The second, and not yet the first, right after a read of a few bytes.
        Ok(self.completed()? >= ticket || self.queue.lock().pending.complete() >= ticket)
    }

    /// Returns when everything before the event is done.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn wait(&self) -> Result<(), Error> {
        fork::check()?;
        self.queue.prepare_wait()?;
        let ticket = self.ticket()?;
        if self.completed()? >= ticket {
            return Ok(());
        }
        self.queue.wait(ticket)
    }

    /// Milliseconds from this event to a later one. Waits for both.
    ///
    /// # Errors
    /// [`Error::NoTiming`] unless both were recorded for timing on one device; as
    /// [`query`](Self::query).
    pub fn elapsed_ms(&self, later: &Event) -> Result<f64, Error> {
        if !Arc::ptr_eq(&self.queue, &later.queue) {
            return Err(Error::NoTiming { reason: "they are on different devices" });
        }
        self.wait()?;
        later.wait()?;
        if let (Some(from), Some(to)) = (self.reached, later.reached) {
            let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
            return Ok((seconds(from, to) - seconds(to, from)) * 1e3);
        }
        let none = Error::NoTiming { reason: "both must be recorded with timing" };
        let (Some(from), Some(to)) = (self.marker.stamp(), later.marker.stamp()) else {
            return Err(none);
        };
        self.queue.submission.elapsed_ns(from, to)?.map(|ns| ns * 1e-6).ok_or(none)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("device", &self.device_index()).field("marker", &self.marker).finish()
    }
}
