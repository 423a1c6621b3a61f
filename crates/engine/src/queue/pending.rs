//! The pending batch of one device, and how far the work before it is.
//!
//! Enqueuing appends a compact command to the pending batch. That pipelines are needed only when
//! the batch is recorded lets them compile while the host goes on; and the recording pass can fuse
//! launches, as it sees the frees that make an intermediate dead. Every batch gets the ticket of
//! its submission when it ends, before it is submitted: so events and the ring know what to wait
//! for.

use crate::backend::{Gpu, Segment, Timeline};
use crate::commands::list::{CommandList, PartOf, StagedBytes};
use crate::commands::marker::Marker;
use crate::commands::replay::Replay;
use crate::error::Error;
use crate::kernels::launch::Launch;
use crate::memory::allocator::COMMON;
use crate::memory::device_memory::DeviceMemory;
use crate::memory::range::AddressRange;
use crate::memory::upload_ring::{Region, UploadRing};
use crate::queue::policy::{Decision, Policy};
use crate::submit::batch::{EndedBatch, PendingBatch};
use crate::submit::statistics::QueueStats;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::ops::Deref;
use std::sync::Arc;

/// The pending batch, and how far the work before it is. Its commands can be read through it.
pub(crate) struct Pending {
    batch: PendingBatch,
    /// The ticket of the last batch that ended.
    ended: Ticket,
    /// All commands up to this ticket are complete. The driver may still use the last submissions'
    /// command buffers.
    complete: Ticket,
    timeline: Timeline,
    policy: Policy,
    ring: UploadRing,
    /// Commands of the batches that ended, and waits.
    stats: QueueStats,
    /// Launches that were split.
    split: u64,
    /// The device is profiled.
    profiled: bool,
}

impl Deref for Pending {
    type Target = CommandList;

    fn deref(&self) -> &CommandList {
        &self.batch
    }
}

impl Pending {
    /// An empty batch for a stream of this timeline, which gives no other tickets (but see
    /// [`follow_timeline`](Self::follow_timeline)).
    ///
    /// # Errors
    /// No memory for the ring.
    pub(crate) fn new(gpu: &Gpu, timeline: Timeline) -> Result<Self, Error> {
        Ok(Self {
            batch: PendingBatch::new(CommandList::for_batch()),
            ended: timeline.last_ticket(),
            complete: Ticket(0),
            timeline,
            policy: Policy::default(),
            ring: UploadRing::new(gpu)?,
            stats: QueueStats::default(),
            split: 0,
            profiled: false,
        })
    }

    /// Commands enqueued, and waits.
    pub(crate) fn stats(&self) -> QueueStats {
        QueueStats { commands: self.stats.commands + u64::from(self.count()), ..self.stats }
    }

    /// The device is profiled.
    pub(crate) fn is_profiled(&self) -> bool {
        self.profiled
    }

    /// Keeps what enqueues each command from now on, or not.
    pub(crate) fn set_profiled(&mut self, profiled: bool) {
        self.profiled = profiled;
        self.batch.commands.set_profiled(profiled);
    }

    /// Whether there is anything to submit: commands, frees or timestamps.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands().is_empty()
    }

    // ---- tickets

    /// The ticket of the last batch that ended.
    pub(crate) fn last_ticket(&self) -> Ticket {
        self.ended
    }

    /// The ticket of the pending batch.
    pub(crate) fn next_ticket(&self) -> Ticket {
        Ticket(self.ended.0 + 1)
    }

    /// Continues after the tickets that the stream gave for work of its own. Every batch that ended
    /// has been submitted.
    pub(crate) fn follow_timeline(&mut self) {
        self.ended = self.timeline.last_ticket();
    }

    /// Ends the pending batch, which gets the next ticket; the list `empty` is for the batch after
    /// it. Deferred frees are carried out: no address of a small block means two things within a
    /// batch.
    pub(crate) fn end(&mut self, mut empty: CommandList, memory: &mut DeviceMemory) -> EndedBatch {
        self.ended = self.next_ticket();
        self.ring.submitted(self.ended);
        memory.reclaim(COMMON);
        self.stats.commands += u64::from(self.count());
        empty.set_profiled(self.profiled);
        std::mem::replace(&mut self.batch, PendingBatch::new(empty)).end(self.ended)
    }

    /// Whether every batch that ended is complete. The pending one does not count.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn is_idle(&mut self) -> Result<bool, Error> {
        if self.complete < self.ended {
            let complete = self.timeline.completed()?;
            self.retire(complete);
        }
        Ok(self.complete >= self.ended)
    }

    /// All commands up to this ticket are known to be complete.
    pub(crate) fn complete(&self) -> Ticket {
        self.complete
    }

    /// All commands up to `ticket` are complete: their bytes in the ring may be used again.
    pub(crate) fn retire(&mut self, ticket: Ticket) {
        self.complete = self.complete.max(ticket);
        self.ring.retire(self.complete);
    }

    // ---- enqueuing

    /// A number for a launch that is split, which its parts are given.
    pub(crate) fn split(&mut self) -> u64 {
        self.split += 1;
        self.split
    }

    /// Appends a launch, or a part of one: see [`CommandList::push_launch`].
    #[inline]
    pub(crate) fn push_launch(&mut self, launch: &Launch<'_>, in_memory: Option<u64>, part: Option<PartOf>) {
        self.batch.commands.push_launch(launch, in_memory, part);
    }

    /// Appends a copy from the ring.
    pub(crate) fn push_copy(&mut self, from: Region, to: Arc<Segment>, to_offset: u64, range: AddressRange) {
        let from = StagedBytes { segment: 0, offset: from.offset as u32 };
        self.batch.commands.push_copy(from, to, to_offset, range);
    }

    /// Appends a free.
    pub(crate) fn push_free(&mut self, address: u64) {
        self.batch.commands.push_free(address);
    }

    /// Appends a timestamp for a marker.
    pub(crate) fn push_timestamp(&mut self, marker: Arc<Marker>) {
        self.batch.commands.push_timestamp(marker);
    }

    /// Appends a run of a graph.
    pub(crate) fn push_replay(&mut self, replay: &Arc<Replay>) {
        self.batch.commands.push_replay(replay);
    }

    // ---- the policy

    /// Whether the batch is due now that a command was appended. It should have at most `limit`
    /// commands.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    #[inline]
    pub(crate) fn is_due(&mut self, limit: u32) -> Result<bool, Error> {
        let decision = self.policy.added(self.batch.count(), limit);
        self.decided(decision)
    }

    /// As [`is_due`](Self::is_due), after a run of a graph of `launches` commands.
    ///
    /// # Errors
    /// As [`is_due`](Self::is_due).
    pub(crate) fn is_due_after(&mut self, launches: u32, limit: u32) -> Result<bool, Error> {
        let decision = self.policy.added_many(launches, self.batch.count(), limit);
        self.decided(decision)
    }

    #[inline]
    fn decided(&mut self, decision: Decision) -> Result<bool, Error> {
        match decision {
            Decision::Keep => Ok(false),
            Decision::Submit => Ok(true),
            Decision::SubmitIfIdle => self.is_idle(),
        }
    }

    /// The host is about to wait for the enqueued commands.
    pub(crate) fn count_wait(&mut self) {
        self.policy.waited();
        self.stats.waits += 1;
    }

    // ---- the ring

    /// The memory of the ring that staged bytes lie in.
    pub(crate) fn ring_memory(&self) -> &Arc<Segment> {
        self.ring.memory()
    }

    /// Copies bytes into the ring, if there is room.
    pub(crate) fn write_ring(&mut self, data: &[u8]) -> Option<Region> {
        self.ring.write(data)
    }

    /// The ticket to wait for to get room in the ring; `None` when all of it belongs to the pending
    /// batch.
    pub(crate) fn oldest_in_ring(&self) -> Option<Ticket> {
        self.ring.oldest()
    }
}
