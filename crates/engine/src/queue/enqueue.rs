//! Appending to the pending batch. A batch that is due then goes to the submission thread, or to
//! the driver.

use crate::backend::Segment;
use crate::commands::list::{PartOf, bytes_in_memory};
use crate::commands::marker::Marker;
use crate::commands::replay::Replay;
use crate::error::Error;
use crate::kernels::launch::Launch;
use crate::kernels::parts::{Part, parts};
use crate::memory::range::AddressRange;
use crate::memory::upload_ring::Region;
use crate::profile::measure::{self, Stage};
use crate::queue::device_queue::{DeviceQueue, State};
use crate::queue::policy;
use crate::queue::validate::validate;
use dml_gpu::traits::*;
use std::sync::Arc;

impl DeviceQueue {
    /// Enqueues a run of a kernel.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`]; [`Error::DeviceLost`]; an error of earlier work.
    #[inline]
    pub(crate) fn launch(&self, launch: &Launch<'_>) -> Result<(), Error> {
        self.submission.alive()?;
        validate(launch, self.gpu().info().capabilities.max_groups)?;
        if launch.kernel.refused() {
            return self.submission.check(launch.kernel.pipeline(self.gpu()).map(drop));
        }
        if self.fault.raised() {
            self.raise_fault()?;
        }
        if launch.groups.contains(&0) {
            return Ok(());
        }
        self.throttle()?;
        let mut state = self.lock();
        self.launch_locked(&mut state, launch)
    }

    /// Enqueues a valid launch.
    #[inline]
    pub(crate) fn launch_locked(&self, state: &mut State, launch: &Launch<'_>) -> Result<(), Error> {
        self.submission.take_deferred()?;
        if state.capture.is_some() && self.capture_launch(state, launch)? {
            return Ok(());
        }
        if self.work_bound.is_exceeded(state.pending.work(), launch.work) {
            return self.append_bounded(state, launch);
        }
        self.append(state, launch, None)
    }

    /// Appends a launch whose work exceeds the bound together with the pending batch, and perhaps
    /// by itself.
    #[cold]
    fn append_bounded(&self, state: &mut State, launch: &Launch<'_>) -> Result<(), Error> {
        let mut number = None;
        let most = |groups| self.work_bound.of_launch(groups);
        for Part { base, groups, work } in parts(launch.kernel, launch.groups, launch.work, most) {
            self.end_batch_before(state, work)?;
            let part = (groups != launch.groups)
                .then(|| PartOf { base, launch: *number.get_or_insert_with(|| state.pending.split()) });
            self.append(state, &Launch { groups, work, ..*launch }, part)?;
        }
        Ok(())
    }

    /// Ends the pending batch if it would do too much with `work` more, however much is in flight.
    fn end_batch_before(&self, state: &mut State, work: u64) -> Result<(), Error> {
        if state.pending.count() == 0 || !self.work_bound.is_exceeded(state.pending.work(), work) {
            return Ok(());
        }
        if self.submission.handover().has_room() {
            self.hand_over(state);
            return Ok(());
        }
        // An error is a later call's, as when another thread submits.
        let flushed = self.flush_locked(state);
        self.defer(flushed)
    }

    /// Appends a launch, or a part of one.
    #[inline]
    fn append(&self, state: &mut State, launch: &Launch<'_>, part: Option<PartOf>) -> Result<(), Error> {
        let in_memory = match bytes_in_memory(launch) {
            None => None,
            Some(bytes) => Some(self.stage(state, bytes)?.address),
        };
        state.pending.push_launch(launch, in_memory, part);
        let woken = self.submission.handover().notify_enqueued(state.pending.count() == 1);
        if policy::begins_at_once(woken, || launch.kernel.is_compiled() && self.submission.has_room()) {
            // An error is a later call's, as when another thread submits.
            let flushed = self.flush_locked(state);
            return self.defer(flushed);
        }
        self.follow_policy(state)
    }

    /// Captures a launch of the capturing thread. False if it must run: it is another thread's.
    #[cold]
    fn capture_launch(&self, state: &mut State, launch: &Launch<'_>) -> Result<bool, Error> {
        let State { capture, memory, .. } = state;
        self.submission.check(capture.launch(self.gpu(), memory, launch))
    }

    /// Copies at most [`MAX_REGION_BYTES`](crate::memory::upload_ring::MAX_REGION_BYTES) bytes into
    /// the ring, for a command that is enqueued next. Waits for room if there is none.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; an error of pending work.
    pub(crate) fn stage(&self, state: &mut State, data: &[u8]) -> Result<Region, Error> {
        loop {
            if let Some(region) = state.pending.write_ring(data) {
                return Ok(region);
            }
            match state.pending.oldest_in_ring() {
                Some(ticket) => {
                    drop(self.submission.catch_up());
                    self.submission.wait_uninterrupted(ticket)?;
                    state.pending.retire(ticket);
                }
                // All of it belongs to the pending batch.
                None => self.flush_locked(state)?,
            }
        }
    }

    /// Enqueues a copy of [staged](Self::stage) bytes to an offset in a segment, which is `range`.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn copy_locked(
        &self,
        state: &mut State,
        from: Region,
        (to, to_offset): (Arc<Segment>, u64),
        range: AddressRange,
    ) -> Result<(), Error> {
        state.pending.push_copy(from, to, to_offset, range);
        self.submission.handover().notify_enqueued(state.pending.count() == 1);
        self.follow_policy(state)
    }

    /// Enqueues a run of a graph, which consists of these replays. Nothing comes between them.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(crate) fn replay_locked(&self, state: &mut State, replays: &[Arc<Replay>]) -> Result<(), Error> {
        let mut launches = 0;
        for replay in replays {
            self.end_batch_before(state, replay.work)?;
            state.pending.push_replay(replay);
            launches += replay.launches;
            self.submission.handover().notify_enqueued(state.pending.count() == replay.launches);
        }
        let due = state.pending.is_due_after(launches, self.submission.batch_limit());
        self.submit_if(state, due)
    }

    /// Sets a marker here. With `timing`, for which the queue must have timestamps, the time is
    /// recorded at which it is reached.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn mark(&self, marker: &Arc<Marker>, timing: bool) -> Result<(), Error> {
        self.submission.alive()?;
        let mut state = self.lock();
        let pending = !state.pending.is_empty();
        marker.set(if pending || timing { state.pending.next_ticket() } else { state.pending.last_ticket() });
        if timing {
            state.pending.push_timestamp(Arc::clone(marker));
            self.submission.handover().notify_enqueued(!pending);
        }
        Ok(())
    }

    #[inline]
    fn follow_policy(&self, state: &mut State) -> Result<(), Error> {
        let due = state.pending.is_due(self.submission.batch_limit());
        self.submit_if(state, due)
    }

    #[inline]
    fn submit_if(&self, state: &mut State, due: Result<bool, Error>) -> Result<(), Error> {
        match due {
            Ok(false) => Ok(()),
            Ok(true) => self.submit_due(state),
            Err(e) => self.submission.check(Err(e)),
        }
    }

    /// Hands the pending batch over, or flushes if the submission thread has too much to do. With
    /// as much in flight as may be, the batch stays pending, and the next thread that enqueues
    /// waits.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub(super) fn submit_due(&self, state: &mut State) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Submit);
        if !self.submission.has_room() {
            return Ok(());
        }
        if !self.submission.handover().has_room() {
            return self.flush_locked(state);
        }
        self.hand_over(state);
        Ok(())
    }
}
