//! Markers: points between commands, which events wait for.

use crate::backend::{Recorder, TimestampId};
use crate::error::Error;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A point between commands that an event waits for.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    /// The ticket whose completion reaches the marker. It may belong to a batch that is still
    /// pending.
    ticket: AtomicU64,
    stamp: OnceLock<TimestampId>,
}

impl Marker {
    /// Sets the ticket whose completion reaches the marker.
    pub(crate) fn set(&self, ticket: Ticket) {
        self.ticket.store(ticket.0, Ordering::Release);
    }

    /// The ticket whose completion reaches the marker.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.ticket.load(Ordering::Acquire))
    }

    /// The timestamp, once the marker was recorded for timing.
    pub(crate) fn stamp(&self) -> Option<&TimestampId> {
        self.stamp.get()
    }

    /// Records a timestamp at this point.
    pub(crate) fn record(&self, recorder: &mut Recorder) -> Result<(), Error> {
        let _ = self.stamp.set(recorder.timestamp()?);
        Ok(())
    }
}
