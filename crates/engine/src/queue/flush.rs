//! From the pending batch to the submission: batches end, and go to the driver or to the thread
//! that gives them to it.

use crate::error::Error;
use crate::queue::device_queue::{DeviceQueue, State};
use crate::queue::policy::Decision;
use crate::submit::batch::EndedBatch;
use crate::submit::submission::{More, Visibility};
use dml_gpu::Ticket;
use dml_gpu::traits::*;

impl DeviceQueue {
    /// Ends the pending batch.
    pub(super) fn end(&self, state: &mut State) -> EndedBatch {
        let handover = self.submission.handover();
        handover.notify_ended();
        state.pending.end(handover.take_empty_list(), &mut state.memory)
    }

    /// Ends the pending batch, and leaves it to the submission thread.
    pub(super) fn hand_over(&self, state: &mut State) {
        let batch = self.end(state);
        self.submission.handover().send(batch);
        self.submission.handover().wake();
    }

    /// Submits everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.submission.alive()?;
        self.flush_locked(&mut self.lock())
    }

    /// As [`flush`](Self::flush).
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_locked(&self, state: &mut State) -> Result<(), Error> {
        self.flush_with(state, Visibility::Device, None).0
    }

    /// Submits everything enqueued and `more` after it for a host that is about to wait for it.
    pub(crate) fn flush_to_wait(
        &self,
        state: &mut State,
        visibility: Visibility,
        more: Option<More<'_>>,
    ) -> (Result<(), Error>, Ticket) {
        state.pending.count_wait();
        self.flush_with(state, visibility, more)
    }

    /// Submits everything enqueued, then `more`, as one submission. Returns its ticket, or with
    /// nothing to submit the last one.
    pub(crate) fn flush_with(
        &self,
        state: &mut State,
        visibility: Visibility,
        more: Option<More<'_>>,
    ) -> (Result<(), Error>, Ticket) {
        let stream = self.submission.catch_up();
        let visible = visibility == Visibility::Device || stream.recorder.is_host_visible();
        if state.pending.is_empty() && more.is_none() && visible {
            return (self.submission.take_deferred(), state.pending.last_ticket());
        }
        let batch = self.end(state);
        let ticket = batch.ticket();
        (self.submission.submit(stream, batch, visibility, more), ticket)
    }

    /// Submits what `ticket` stands for, if that was not done.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub(crate) fn flush_up_to(&self, ticket: Ticket) -> Result<(), Error> {
        if self.submission.timeline().last_ticket() >= ticket {
            return Ok(());
        }
        self.flush()?;
        self.submission.alive()
    }

    /// For the submission thread, when nobody enqueues: submits the pending batch, and what was
    /// handed over. With [`Decision::SubmitIfIdle`], a device that has work gets no more. Errors
    /// are deferred to the next calls of the threads that enqueued the work.
    pub(super) fn flush_quiet(&self, decision: Decision) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let handover = self.submission.handover();
        if state.pending.is_empty() {
            handover.notify_ended();
        } else {
            // The thread that records finds an error again.
            let busy = decision != Decision::Submit && matches!(state.pending.is_idle(), Ok(false));
            if busy || !self.submission.has_room() {
                return;
            }
            let batch = self.end(&mut state);
            handover.send(batch);
        }
        drop(state);
        self.submission.submit_handed_over(|| handover.is_stopped());
    }
}
