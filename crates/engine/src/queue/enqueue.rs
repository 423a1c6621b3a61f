//! Appending to the pending batch, and what follows from it: a batch that is due goes to the thread
//! that submits, or to the driver.

use crate::backend::Segment;
use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::Launch;
use crate::kernels::parts::{Part, parts};
use crate::memory::range::AddressRange;
use crate::memory::upload_ring::Region;
use crate::profile::measure::{self, Stage};
use crate::queue::device_queue::{DeviceQueue, State};
use crate::queue::policy;
use crate::queue::validate::validate;
use crate::submit::batch::{Marker, Replay};
use dml_gpu::traits::*;
use std::sync::Arc;

/// So often a thread that is to wait for the device waits for room before: once for each batch that
/// may have been handed over.
const MAX_TURNS: u32 = 8;

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
            return self.submission.wrap(launch.kernel.pipeline(self.gpu()).map(drop));
        }
        if self.fault.raised() {
            self.raise_fault()?;
        }
        if launch.groups.contains(&0) {
            return Ok(());
        }
        self.await_room_to_enqueue()?;
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

    /// Appends a launch that does too much to go with what is pending, and maybe too much for one
    /// submission.
    #[cold]
    fn append_bounded(&self, state: &mut State, launch: &Launch<'_>) -> Result<(), Error> {
        let mut number = None;
        let most = |groups| self.work_bound.of_launch(groups);
        for Part { base, groups, work } in parts(launch.kernel, launch.groups, launch.work, most) {
            self.end_batch_before(state, work)?;
            let of = (groups != launch.groups).then(|| (base, *number.get_or_insert_with(|| state.pending.cut())));
            self.append(state, &Launch { groups, work, ..*launch }, of)?;
        }
        Ok(())
    }

    /// Ends the pending batch if it would do too much with `work` more, however much is in flight.
    fn end_batch_before(&self, state: &mut State, work: u64) -> Result<(), Error> {
        if state.pending.pending() == 0 || !self.work_bound.is_exceeded(state.pending.work(), work) {
            return Ok(());
        }
        if self.submission.handover().has_room() {
            self.leave(state);
            self.submission.handover().wake();
            return Ok(());
        }
        // An error is a later call's, as when another thread submits.
        let flushed = self.flush_locked(state);
        self.defer_unless_lost(flushed)
    }

    /// Appends a launch, or a part of one (see
    /// [`Pending::push_launch`](crate::queue::pending::Pending::push_launch)).
    #[inline]
    fn append(&self, state: &mut State, launch: &Launch<'_>, part: Option<([u32; 3], u64)>) -> Result<(), Error> {
        if launch.kernel.has_indirect_parameters() {
            let Region { address, .. } = self.write_ring(state, launch.params)?;
            state.pending.push_launch(launch, [&address.to_ne_bytes(), &[]], part);
        } else if !launch.table.is_empty() {
            let Region { address, .. } = self.write_ring(state, launch.table)?;
            state.pending.push_launch(launch, [&address.to_ne_bytes(), launch.params], part);
        } else {
            state.pending.push_launch(launch, [&[], launch.params], part);
        }
        let woken = self.submission.handover().enqueued(state.pending.pending() == 1);
        if policy::begins_at_once(woken, || launch.kernel.is_compiled() && self.submission.has_room()) {
            // An error is a later call's, as when another thread submits.
            let flushed = self.flush_locked(state);
            return self.defer_unless_lost(flushed);
        }
        self.follow_policy(state)
    }

    /// Captures a launch of the capturing thread. False if it must run: it is another thread's.
    #[cold]
    fn capture_launch(&self, state: &mut State, launch: &Launch<'_>) -> Result<bool, Error> {
        let State { capture, memory, .. } = state;
        self.submission.wrap(capture.launch(self.gpu(), memory, launch))
    }

    /// Copies at most [`MAX_REGION_BYTES`](crate::memory::upload_ring::MAX_REGION_BYTES) bytes into
    /// the ring, waiting for room if there is none.
    pub(crate) fn write_ring(&self, state: &mut State, data: &[u8]) -> Result<Region, Error> {
        loop {
            if let Some(region) = state.pending.write_ring(data) {
                return Ok(region);
            }
            match state.pending.oldest_in_ring() {
                Some(ticket) => {
                    drop(self.submission.up_to_date());
                    self.submission.wait_locked(ticket)?;
                    state.pending.completed(ticket);
                }
                // All of it belongs to entries that are pending.
                None => self.flush_locked(state)?,
            }
        }
    }

    /// Enqueues a copy from a region of the ring to `offset` in a segment, which is `range`.
    pub(crate) fn copy_from_ring(
        &self,
        state: &mut State,
        from: Region,
        to: Arc<Segment>,
        offset: u64,
        range: AddressRange,
    ) -> Result<(), Error> {
        state.pending.push_upload(from.offset, to, offset, range);
        self.submission.handover().enqueued(state.pending.pending() == 1);
        self.follow_policy(state)
    }

    /// Enqueues a run of a graph, which consists of these. Nothing comes between them.
    pub(crate) fn replay(&self, state: &mut State, replays: &[Arc<Replay>]) -> Result<(), Error> {
        let mut launches = 0;
        for replay in replays {
            self.end_batch_before(state, replay.work)?;
            state.pending.push_replay(replay);
            launches += replay.launches;
            self.submission.handover().enqueued(state.pending.pending() == replay.launches);
        }
        let due = state.pending.is_due_after(launches, self.submission.batch_limit());
        self.hand_over_if(state, due)
    }

    /// Sets a marker here; with `timing`, which the queue must have timestamps for, it notes when
    /// it is reached.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub(crate) fn mark(&self, marker: &Arc<Marker>, timing: bool) -> Result<(), Error> {
        self.submission.alive()?;
        let mut state = self.lock();
        let pending = state.pending.has_pending();
        marker.set(if pending || timing { state.pending.next_ticket() } else { state.pending.last_ticket() });
        if timing {
            state.pending.push_marker(Arc::clone(marker));
            self.submission.handover().enqueued(!pending);
        }
        Ok(())
    }

    /// Waits while as much is in flight as may be, and then submits what is due. To be called
    /// before anything is enqueued, with nothing locked. A wait that is interrupted just ends: an
    /// operator of several launches is enqueued as a whole, and stays pending meanwhile; who called
    /// it hears of the interruption from the program.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; an error of earlier work.
    #[inline]
    pub(crate) fn await_room_to_enqueue(&self) -> Result<(), Error> {
        if !self.submission.is_full() {
            return Ok(());
        }
        match self.await_room() {
            Err(Error::Interrupted) => Ok(()),
            other => other,
        }
    }

    /// As [`await_room_to_enqueue`](Self::await_room_to_enqueue), for what is enqueued as a whole
    /// or not at all.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; as there.
    pub(crate) fn await_room_to_replay(&self) -> Result<(), Error> {
        if self.submission.is_full() { self.await_room() } else { Ok(()) }
    }

    /// Waits until there is room in flight, and submits what is due.
    #[cold]
    fn await_room(&self) -> Result<(), Error> {
        self.submission.await_room()?;
        let mut state = self.lock();
        if state.pending.pending() >= self.submission.batch_limit() {
            return self.hand_over(&mut state, Ok(true));
        }
        Ok(())
    }

    /// Waits until what was handed over is with the driver, there is room for more, and the kernels
    /// of what is pending are compiled: to be called before a wait, with nothing locked, so that it
    /// gives the driver no more at once than may be in flight, and waits for no compiler with
    /// something locked.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`]; an error of earlier work.
    #[inline]
    pub(crate) fn await_room_to_wait(&self) -> Result<(), Error> {
        // Other threads may fill the room again and again; then this one takes its turn.
        for _ in 0..MAX_TURNS {
            if !self.submission.is_full() && !self.submission.handover().has_batches() {
                break;
            }
            self.await_room()?;
            self.submission.record_handed_to_wait()?;
        }
        while let Some(kernel) = self.uncompiled() {
            kernel.await_compiled(self.gpu())?;
        }
        Ok(())
    }

    /// A kernel of what is pending that is not compiled.
    fn uncompiled(&self) -> Option<KernelRef> {
        self.lock().pending.uncompiled().cloned()
    }

    #[inline]
    fn follow_policy(&self, state: &mut State) -> Result<(), Error> {
        let due = state.pending.is_due(self.submission.batch_limit());
        self.hand_over_if(state, due)
    }

    #[inline]
    fn hand_over_if(&self, state: &mut State, due: Result<bool, Error>) -> Result<(), Error> {
        match due {
            Ok(false) => Ok(()),
            due => self.hand_over(state, due),
        }
    }

    /// Leaves the pending batch to the thread that submits, or submits it here if that has too much
    /// to do. With as much in flight as may be, it stays pending, and who enqueues next waits.
    fn hand_over(&self, state: &mut State, due: Result<bool, Error>) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Submit);
        self.submission.wrap(due)?;
        if !self.submission.has_room() {
            return Ok(());
        }
        if !self.submission.handover().has_room() {
            return self.flush_locked(state);
        }
        self.leave(state);
        self.submission.handover().wake();
        Ok(())
    }
}
