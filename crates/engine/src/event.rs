//! Events: a place in a device's queue, with the time when it was reached if wanted.

use crate::device::Shared;
use crate::error::Error;
use crate::fork;
use dml_vulkan::{Recorder, Ticket, TimestampId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct EventState {
    /// The ticket that completes the event, which may be one that was not submitted yet.
    ticket: AtomicU64,
    stamp: OnceLock<TimestampId>,
}

impl EventState {
    pub(crate) fn new() -> Self {
        Self { ticket: AtomicU64::new(0), stamp: OnceLock::new() }
    }

    /// The event is complete when `ticket` is.
    pub(crate) fn set(&self, ticket: Ticket) {
        self.ticket.store(ticket.0, Ordering::Release);
    }

    /// Records the event's time.
    pub(crate) fn recorded(&self, recorder: &mut Recorder) -> Result<(), Error> {
        let _ = self.stamp.set(recorder.timestamp()?);
        Ok(())
    }
}

/// A place in a device's queue: everything enqueued before it.
#[derive(Clone)]
pub struct Event {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<EventState>,
}

impl Event {
    /// The device's index.
    pub fn device_index(&self) -> usize {
        self.shared.index()
    }

    /// The ticket; submits the work before the event if that was not done.
    fn ticket(&self) -> Result<Ticket, Error> {
        fork::check()?;
        self.shared.refuse_in_capture("asking or waiting for an event")?;
        let ticket = Ticket(self.state.ticket.load(Ordering::Acquire));
        self.shared.ensure_submitted(ticket)?;
        Ok(ticket)
    }

    /// Whether everything before the event is done. Does not wait.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of work that was pending.
    pub fn query(&self) -> Result<bool, Error> {
        let ticket = self.ticket()?;
        let shared = &self.shared;
        // The second, and not yet the first, right after a read of a few bytes.
        Ok(shared.wrap(shared.timeline().completed())? >= ticket || shared.lock().queue.done() >= ticket)
    }

    /// Returns when everything before the event is done.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn wait(&self) -> Result<(), Error> {
        let ticket = self.ticket()?;
        if self.shared.wrap(self.shared.timeline().completed())? >= ticket {
            return Ok(());
        }
        self.shared.wait(ticket)
    }

    /// Milliseconds from this event to a later one. Waits for both.
    ///
    /// # Errors
    /// [`Error::NoTiming`] unless both were recorded for timing on one device; as [`query`](Self::query).
    pub fn elapsed_ms(&self, later: &Event) -> Result<f64, Error> {
        if !Arc::ptr_eq(&self.shared, &later.shared) {
            return Err(Error::NoTiming { reason: "they are on different devices" });
        }
        self.wait()?;
        later.wait()?;
        let none = Error::NoTiming { reason: "both must be recorded with timing" };
        let (Some(from), Some(to)) = (self.state.stamp.get(), later.state.stamp.get()) else {
            return Err(none);
        };
        let (from, to) = self.shared.timestamps(from, to)?;
        match (from, to) {
            (Some(from), Some(to)) => Ok((to as f64 - from as f64) * 1e-6),
            _ => Err(none),
        }
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event").field("device", &self.shared.index()).field("state", &self.state).finish()
    }
}
