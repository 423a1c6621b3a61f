//! What is enqueued on one device, in order, until its batch ends and is handed over to be recorded
//! (see [`crate::submit`]).
//!
//! Enqueuing appends a compact entry to the pending [`Batch`]. That pipelines are needed only when
//! the batch is recorded lets them compile while the host goes on; and the recording pass can fuse
//! launches, as it sees the frees that make an intermediate dead. Every batch gets the ticket of
//! its submission when it ends, before it is submitted: so events and the ring know what to wait
//! for.

use crate::backend::{Gpu, Segment, Timeline};
use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::Launch;
use crate::memory::allocator::COMMON;
use crate::memory::device_memory::DeviceMemory;
use crate::memory::range::AddressRange;
use crate::memory::upload_ring::{Region, UploadRing};
use crate::profile::activity::{Origin, UPLOAD};
use crate::queue::policy::{Decision, Policy};
use crate::submit::batch::{Batch, Command, Entry, LaunchPart, Marker, Replay};
use crate::submit::statistics::QueueStats;
use crate::threads::ThreadNumber;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::Arc;

/// The pending batch, and how far the work before it is.
pub(crate) struct Pending {
    batch: Batch,
    /// The last ticket that a batch was given.
    handed: Ticket,
    /// All commands up to this ticket are done. The driver may still use the last submits' command
    /// buffers.
    done: Ticket,
    timeline: Timeline,
    policy: Policy,
    ring: UploadRing,
    /// What is counted here: commands and waits.
    stats: QueueStats,
    /// Launches that were cut.
    cut: u64,
    /// The device is profiled.
    profiled: bool,
}

impl Pending {
    /// What is pending for a stream of this timeline, which gives no other tickets.
    pub(crate) fn new(gpu: &Gpu, timeline: Timeline) -> Result<Self, Error> {
        Ok(Self {
            batch: Batch::new(),
            handed: timeline.last_ticket(),
            done: Ticket(0),
            timeline,
            policy: Policy::default(),
            ring: UploadRing::new(gpu)?,
            stats: QueueStats::default(),
            cut: 0,
            profiled: false,
        })
    }

    /// The memory of the ring that uploads travel through.
    pub(crate) fn ring_memory(&self) -> &Arc<Segment> {
        self.ring.memory()
    }

    /// Commands enqueued and waits.
    pub(crate) fn stats(&self) -> QueueStats {
        self.stats
    }

    /// The device is profiled.
    pub(crate) fn is_profiled(&self) -> bool {
        self.profiled
    }

    /// Notes what enqueues each entry, or not.
    pub(crate) fn set_profiled(&mut self, profiled: bool) {
        self.profiled = profiled;
    }

    /// Commands that were not handed over.
    pub(crate) fn pending(&self) -> u32 {
        self.batch.commands
    }

    /// What they do.
    #[inline]
    pub(crate) fn work(&self) -> u64 {
        self.batch.work
    }

    /// Whether entries were not handed over, events included.
    pub(crate) fn has_pending(&self) -> bool {
        !self.batch.entries.is_empty()
    }

    /// A kernel that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<&KernelRef> {
        self.batch.uncompiled()
    }

    /// The ticket of all that was handed over.
    pub(crate) fn last_ticket(&self) -> Ticket {
        self.handed
    }

    /// The ticket of what is pending now.
    pub(crate) fn next_ticket(&self) -> Ticket {
        Ticket(self.handed.0 + 1)
    }

    /// Ends the pending batch, which becomes that of the next ticket; `empty` is for what comes
    /// after it. Deferred frees are carried out: no address of a small block means two things
    /// within a batch.
    pub(crate) fn take(&mut self, empty: Batch, memory: &mut DeviceMemory) -> Batch {
        self.handed = self.next_ticket();
        self.ring.submitted(self.handed);
        memory.reclaim(COMMON);
        let mut batch = std::mem::replace(&mut self.batch, empty);
        batch.ticket = self.handed;
        batch
    }

    /// The number of a launch that is cut, which its parts are given.
    pub(crate) fn cut(&mut self) -> u64 {
        self.cut += 1;
        self.cut
    }

    /// Appends a launch, or the part of one that begins at an index and is of the launch of a
    /// number. Indirect parameters and tables must already be in the ring: the push constants begin
    /// with the address.
    #[inline]
    pub(crate) fn push_launch(&mut self, launch: &Launch<'_>, constants: [&[u8]; 2], part: Option<([u32; 3], u64)>) {
        let push = self.batch.bytes.len() as u32;
        for part in constants {
            self.batch.bytes.extend_from_slice(part);
        }
        let (kernel, push_len) = (launch.kernel.clone(), self.batch.bytes.len() as u32 - push);
        let groups = launch.groups;
        let command = match part {
            None => Command::Launch { kernel, push, push_len, groups },
            Some((base, launch)) => {
                Command::Part(Box::new(LaunchPart { kernel, push, push_len, base, groups, launch }))
            }
        };
        self.batch.work = self.batch.work.saturating_add(launch.work);
        self.push(command, launch.operator, launch.reads, launch.writes);
        self.count();
    }

    /// Appends a copy from the ring.
    pub(crate) fn push_upload(&mut self, from: u64, to: Arc<Segment>, offset: u64, range: AddressRange) {
        let bytes = range.end - range.start;
        self.push(Command::Upload { from, to, offset, bytes }, UPLOAD, &[], &[range]);
        self.count();
    }

    /// Appends a free.
    pub(crate) fn push_free(&mut self, address: u64) {
        self.push(Command::Free { address }, "free", &[], &[]);
    }

    /// Appends a marker whose time is wanted.
    pub(crate) fn push_marker(&mut self, marker: Arc<Marker>) {
        self.push(Command::Event(marker), "event", &[], &[]);
    }

    /// Appends a run of a graph.
    pub(crate) fn push_replay(&mut self, replay: &Arc<Replay>) {
        self.push(Command::Replay(Arc::clone(replay)), "graph", &[], &[]);
        self.batch.commands += replay.launches;
        self.batch.work = self.batch.work.saturating_add(replay.work);
        self.stats.commands += u64::from(replay.launches);
    }

    #[inline]
    fn push(&mut self, command: Command, operator: &'static str, reads: &[AddressRange], writes: &[AddressRange]) {
        let batch = &mut self.batch;
        let ranges = batch.ranges.len() as u32;
        batch.ranges.extend_from_slice(reads);
        batch.ranges.extend_from_slice(writes);
        let (reads, writes) = (reads.len() as u16, writes.len() as u16);
        if self.profiled {
            batch.origins.push(Origin::here());
        }
        let origin = batch.origins.len() as u32;
        batch.entries.push(Entry { command, operator, ranges, reads, writes, thread: ThreadNumber::here(), origin });
        if let Some(origin) = batch.origins.last_mut() {
            origin.enqueued();
        }
    }

    #[inline]
    fn count(&mut self) {
        self.batch.commands += 1;
        self.stats.commands += 1;
    }

    /// Whether the pending batch should go now that a command was appended, which should have at
    /// most `limit`.
    #[inline]
    pub(crate) fn is_due(&mut self, limit: u32) -> Result<bool, Error> {
        let decision = self.policy.added(self.batch.commands, limit);
        self.decided(decision)
    }

    /// As [`is_due`](Self::is_due), after a run of a graph of `launches` commands.
    pub(crate) fn is_due_after(&mut self, launches: u32, limit: u32) -> Result<bool, Error> {
        let decision = self.policy.added_many(launches, self.batch.commands, limit);
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

    /// The host is about to wait for what is enqueued.
    pub(crate) fn waits(&mut self) {
        self.policy.waited();
        self.stats.waits += 1;
    }

    /// Everything handed over is done. Pending entries do not count.
    pub(crate) fn is_idle(&mut self) -> Result<bool, Error> {
        if self.done < self.handed {
            let done = self.timeline.completed()?;
            self.completed(done);
        }
        Ok(self.done >= self.handed)
    }

    /// All commands up to this ticket are known to be done.
    pub(crate) fn done(&self) -> Ticket {
        self.done
    }

    /// All commands up to `ticket` are done.
    pub(crate) fn completed(&mut self, ticket: Ticket) {
        self.done = self.done.max(ticket);
        self.ring.retire(self.done);
    }

    /// Copies bytes into the ring, if there is room.
    pub(crate) fn write_ring(&mut self, data: &[u8]) -> Option<Region> {
        self.ring.write(data)
    }

    /// The ticket to wait for to get room in the ring; `None` when all of it belongs to what is
    /// pending.
    pub(crate) fn oldest_in_ring(&self) -> Option<Ticket> {
        self.ring.oldest()
    }
}
