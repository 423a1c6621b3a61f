//! The queue of one device: what is enqueued, in order, until it is recorded and submitted.
//!
//! `enqueue` appends a compact entry. At a flush the entries are recorded into the
//! command stream, with a barrier only where bytes overlap, and submitted together. That pipelines
//! are needed only then lets them compile while the host goes on; and a later pass over the pending entries can
//! fuse launches, as it sees the frees that make an intermediate dead.

use crate::allocator::{Allocator, COMMON};
use crate::error::Error;
use crate::event::EventState;
use crate::fusion::{Fusion, Joint};
use crate::graph::Replay;
use crate::hazards::Hazards;
use crate::kernel_cache::KernelRef;
use crate::launch::{Launch, Range};
use crate::measure::{self, Stage};
use crate::policy::{Decision, Policy};
use crate::profile::{self, Note, Profile, Work};
use crate::ring::Ring;
use crate::upload::UPLOAD;
use dml_vulkan::{Gpu, MemoryClass, Recorder, Segment, Ticket};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::Arc;

/// Small uploads and spilled parameters lie here until their work is done.
const RING_BYTES: u64 = 8 << 20;
/// Regions of the ring are aligned to this.
const RING_ALIGN: u64 = 16;

/// The allocator that entries refer to.
pub(crate) type Memory = Allocator<Segment>;

/// What an entry does.
#[derive(Debug)]
enum Command {
    Launch {
        kernel: KernelRef,
        /// Where the push constants are in the byte arena.
        push: u32,
        push_len: u32,
        groups: [u32; 3],
    },
    /// Bytes of the ring to a segment, by the copy command: for lengths and addresses that the copy kernel cannot take.
    Upload {
        ring: u64,
        segment: u32,
        offset: u64,
        bytes: u64,
    },
    /// A block was freed: what earlier entries wrote there is dead unless one of them reads it.
    Free {
        address: u64,
    },
    Event(Arc<EventState>),
    /// Runs a graph. It reads and writes more than its entry names: no command may move across it.
    Replay(Arc<Replay>),
}

#[derive(Debug)]
struct Entry {
    command: Command,
    operator: &'static str,
    /// In the range arena: the reads, then the writes.
    ranges: u32,
    reads: u16,
    writes: u16,
    /// For the profile, if there is one.
    origin: u32,
}

/// What the queue did so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Commands enqueued: launches and copies.
    pub commands: u64,
    /// Launches that ran as part of a joint kernel.
    pub fused_launches: u64,
    /// Runs of joint kernels.
    pub fused_kernels: u64,
    /// Barriers recorded.
    pub barriers: u64,
    /// Submits.
    pub submits: u64,
    /// Times the host waited for the device.
    pub waits: u64,
}

pub(crate) struct Queue {
    recorder: Recorder,
    entries: Vec<Entry>,
    /// Arenas of the entries; they keep their capacity.
    bytes: Vec<u8>,
    ranges: Vec<Range>,
    /// Commands among the entries.
    commands: u32,
    hazards: Hazards,
    fusion: Fusion,
    policy: Policy,
    ring: Ring,
    ring_memory: Segment,
    ring_host: NonNull<u8>,
    /// What the timeline said last.
    done: Ticket,
    /// Submitted writes to mapped memory are visible to the host when their ticket is done.
    host_visible: bool,
    stats: QueueStats,
    /// While the device is profiled.
    pub(crate) profile: Option<Box<Profile>>,
}

// SAFETY: `ring_host` points into `ring_memory`, which is owned here and may be used by any thread;
// the queue is behind the device's mutex.
unsafe impl Send for Queue {}

impl Queue {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, Error> {
        let ring_memory = gpu.allocate(RING_BYTES, MemoryClass::Upload)?;
        let ring_host = mapped(&ring_memory)?;
        Ok(Self {
            recorder: gpu.recorder()?,
            entries: Vec::with_capacity(256),
            bytes: Vec::with_capacity(16 << 10),
            ranges: Vec::with_capacity(1024),
            commands: 0,
            hazards: Hazards::default(),
            fusion: Fusion::default(),
            policy: Policy::default(),
            ring: Ring::new(RING_BYTES),
            ring_memory,
            ring_host,
            done: Ticket(0),
            host_visible: true,
            stats: QueueStats::default(),
            profile: None,
        })
    }

    pub(crate) fn stats(&self) -> QueueStats {
        self.stats
    }

    pub(crate) fn timeline(&self) -> &dml_vulkan::Timeline {
        self.recorder.timeline()
    }

    /// Commands that are not yet submitted.
    pub(crate) fn pending(&self) -> u32 {
        self.commands
    }

    /// Whether entries are not yet submitted, events included.
    pub(crate) fn has_pending(&self) -> bool {
        !self.entries.is_empty() || self.recorder.recorded() > 0
    }

    pub(crate) fn last_ticket(&self) -> Ticket {
        self.recorder.last_ticket()
    }

    /// Appends a launch. Spilled parameters must already be in the ring: `params` is then their address.
    pub(crate) fn push_launch(&mut self, launch: &Launch<'_>, params: &[u8]) {
        let push = self.bytes.len() as u32;
        self.bytes.extend_from_slice(params);
        let command = Command::Launch {
            kernel: launch.kernel.clone(),
            push,
            push_len: params.len() as u32,
            groups: launch.groups,
        };
        self.push(command, launch.operator, launch.reads, launch.writes);
        self.count();
    }

    /// Appends a copy from the ring.
    pub(crate) fn push_upload(&mut self, ring: u64, segment: u32, offset: u64, range: Range) {
        let bytes = range.end - range.start;
        self.push(Command::Upload { ring, segment, offset, bytes }, UPLOAD, &[], &[range]);
        self.count();
    }

    /// Appends a free.
    pub(crate) fn push_free(&mut self, address: u64) {
        self.push(Command::Free { address }, "free", &[], &[]);
    }

    pub(crate) fn push_event(&mut self, event: Arc<EventState>) {
        self.push(Command::Event(event), "event", &[], &[]);
    }

    /// Appends a run of a graph.
    pub(crate) fn push_replay(&mut self, replay: &Arc<Replay>) {
        self.push(Command::Replay(Arc::clone(replay)), "graph", &[], &[]);
        self.commands += replay.launches;
        self.stats.commands += u64::from(replay.launches);
    }

    fn push(&mut self, command: Command, operator: &'static str, reads: &[Range], writes: &[Range]) {
        let ranges = self.ranges.len() as u32;
        self.ranges.extend_from_slice(reads);
        self.ranges.extend_from_slice(writes);
        let (reads, writes) = (reads.len() as u16, writes.len() as u16);
        let origin = self.profile.as_mut().map_or(0, |profile| profile.enqueue());
        self.entries.push(Entry { command, operator, ranges, reads, writes, origin });
    }

    fn count(&mut self) {
        self.commands += 1;
        self.stats.commands += 1;
    }

    /// After a command was appended: submits if the policy says so.
    pub(crate) fn after_push(&mut self, gpu: &Gpu, memory: &mut Memory) -> Result<(), Error> {
        let decision = self.policy.added(self.commands);
        self.decided(decision, gpu, memory)
    }

    /// After a run of a graph of `launches` commands was appended: submits if the policy says so.
    pub(crate) fn after_replay(&mut self, launches: u32, gpu: &Gpu, memory: &mut Memory) -> Result<(), Error> {
        let decision = self.policy.added_many(launches, self.commands);
        self.decided(decision, gpu, memory)
    }

    fn decided(&mut self, decision: Decision, gpu: &Gpu, memory: &mut Memory) -> Result<(), Error> {
        let submit = match decision {
            Decision::Keep => false,
            Decision::Submit => true,
            Decision::SubmitIfIdle => self.is_idle()?,
        };
        let flushed = if submit { self.flush(gpu, memory).map(drop) } else { Ok(()) };
        if let Some(profile) = &mut self.profile {
            profile.enqueued();
        }
        flushed
    }

    /// Everything submitted is done. Pending entries do not count.
    pub(crate) fn is_idle(&mut self) -> Result<bool, Error> {
        if self.done < self.recorder.last_ticket() {
            self.done = self.recorder.completed()?;
            self.ring.retire(self.done);
        }
        Ok(self.done >= self.recorder.last_ticket())
    }

    /// Copies bytes into the ring, waiting for room if there is none. Returns the offset and the GPU address.
    /// At most [`RING_BYTES`] / 2 bytes.
    pub(crate) fn write_ring(&mut self, gpu: &Gpu, memory: &mut Memory, data: &[u8]) -> Result<(u64, u64), Error> {
        let offset = loop {
            if let Some(offset) = self.ring.take(data.len() as u64, RING_ALIGN) {
                break offset;
            }
            match self.ring.oldest() {
                Some(ticket) => {
                    self.recorder.wait(ticket)?;
                    self.done = self.done.max(ticket);
                    self.ring.retire(ticket);
                }
                // All of it belongs to entries that are pending.
                None => drop(self.flush(gpu, memory)?),
            }
        };
        // SAFETY: `take` returned a region inside the ring that no pending or running work reads, and
        // `data` is not mapped memory of the ring.
        unsafe {
            let to = self.ring_host.add(offset as usize);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to.as_ptr(), data.len());
        }
        Ok((offset, self.ring_memory.address() + offset))
    }

    /// Records the pending entries. An entry that fails is left out, and the first error is returned at the end.
    pub(crate) fn record_pending(&mut self, gpu: &Gpu, memory: &mut Memory) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Record);
        let mut failed = None;
        let mut entries = std::mem::take(&mut self.entries);
        let ranges = std::mem::take(&mut self.ranges);
        for i in 0..=entries.len() {
            match entries.get(i).map(|e| &e.command) {
                Some(Command::Launch { kernel, push, push_len, .. }) if self.join(i, kernel, *push, *push_len) => {
                    continue;
                }
                Some(Command::Free { address }) => {
                    self.fusion.freed(*address);
                    continue;
                }
                _ => {}
            }
            // What follows is no part of the chain.
            if let Err(e) = self.run_chain(gpu, memory, &entries, &ranges) {
                failed.get_or_insert(e);
            }
            let Some(entry) = entries.get(i) else { break };
            if let Command::Launch { kernel, push, push_len, .. } = &entry.command
                && self.join(i, kernel, *push, *push_len)
            {
                continue;
            }
            if let Err(e) = self.record(gpu, memory, entry, &ranges) {
                failed.get_or_insert(e);
            }
        }
        entries.clear();
        self.entries = entries;
        self.ranges = ranges;
        self.ranges.clear();
        self.bytes.clear();
        self.commands = 0;
        if let Some(profile) = &mut self.profile
            && let Err(e) = profile.recorded(&mut self.recorder)
        {
            failed.get_or_insert(e.into());
        }
        memory.recycle(COMMON);
        failed.map_or(Ok(()), Err)
    }

    /// Offers a launch to the open chain, or to a new one.
    fn join(&mut self, entry: usize, kernel: &KernelRef, push: u32, push_len: u32) -> bool {
        let params = &self.bytes[push as usize..(push + push_len) as usize];
        self.fusion.offer(entry, kernel, params, push as usize)
    }

    /// Closes the open chain and records it.
    fn run_chain(&mut self, gpu: &Gpu, memory: &mut Memory, entries: &[Entry], ranges: &[Range]) -> Result<(), Error> {
        if !self.fusion.is_open() {
            return Ok(());
        }
        let mut result = Ok(());
        if let Some(joint) = self.fusion.joint(gpu, &self.bytes) {
            let last = self.fusion.entries().last().map(|i| &entries[i]);
            result = last.map_or(Ok(()), |last| self.run_joint(gpu, &joint, last));
        } else {
            let members: SmallVec<[usize; 16]> = self.fusion.entries().collect();
            for i in members {
                result = result.and(self.record(gpu, memory, &entries[i], ranges));
            }
        }
        self.fusion.close();
        result
    }

    /// `last` is the entry of the chain's last launch.
    fn run_joint(&mut self, gpu: &Gpu, joint: &Joint, last: &Entry) -> Result<(), Error> {
        let pipeline = joint.kernel.pipeline(gpu)?;
        self.order(&joint.reads, &joint.writes);
        let note = || Note {
            work: Work::launch(&joint.kernel, joint.groups, last.operator),
            operator: last.operator,
            origin: last.origin,
            reads: &joint.reads,
            writes: &joint.writes,
        };
        let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, &joint.params, joint.groups);
        profile::record(&mut self.profile, &mut self.recorder, note, dispatch)?;
        self.stats.fused_launches += u64::from(joint.launches);
        self.stats.fused_kernels += 1;
        Ok(())
    }

    fn record(&mut self, gpu: &Gpu, memory: &mut Memory, entry: &Entry, ranges: &[Range]) -> Result<(), Error> {
        let from = entry.ranges as usize;
        let (reads, writes) =
            ranges[from..from + usize::from(entry.reads + entry.writes)].split_at(usize::from(entry.reads));
        match &entry.command {
            Command::Launch { kernel, push, push_len, groups } => {
                let pipeline = kernel.pipeline(gpu)?;
                self.order(reads, writes);
                let push = &self.bytes[*push as usize..(*push + *push_len) as usize];
                let note = || Note {
                    work: Work::launch(kernel, *groups, entry.operator),
                    operator: entry.operator,
                    origin: entry.origin,
                    reads,
                    writes,
                };
                let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, push, *groups);
                profile::record(&mut self.profile, &mut self.recorder, note, dispatch).inspect_err(|e| {
                    tracing::debug!("{}: {} was not recorded: {e}", entry.operator, kernel.name());
                })?;
            }
            Command::Upload { ring, segment, offset, bytes } => {
                self.order(reads, writes);
                if let Some(to) = memory.segment(*segment) {
                    let note =
                        || Note { work: Work::Upload, operator: entry.operator, origin: entry.origin, reads, writes };
                    let copy = |recorder: &mut Recorder| recorder.copy(&self.ring_memory, *ring, to, *offset, *bytes);
                    profile::record(&mut self.profile, &mut self.recorder, note, copy)?;
                }
            }
            Command::Free { address } => tracing::trace!("free {address:#x}"),
            Command::Event(event) => event.recorded(&mut self.recorder)?,
            Command::Replay(replay) => {
                self.recorder.execute(&replay.recording)?;
                self.hazards.restart(&replay.read_last, &replay.written_last);
                self.host_visible = false;
                self.stats.barriers += u64::from(replay.barriers);
            }
        }
        Ok(())
    }

    /// Notes the accesses of the command that is recorded next, and records the barrier that it needs.
    fn order(&mut self, reads: &[Range], writes: &[Range]) {
        if self.hazards.access(reads, writes) {
            self.recorder.barrier();
            self.stats.barriers += 1;
        }
        self.host_visible = false;
    }

    /// Records one command at once, with the barrier that it needs. Pending entries must have been recorded.
    pub(crate) fn record_now(
        &mut self,
        work: Work,
        operator: &'static str,
        [reads, writes]: [&[Range]; 2],
        command: impl FnOnce(&mut Recorder) -> Result<(), dml_vulkan::Error>,
    ) -> Result<(), Error> {
        self.order(reads, writes);
        let note = || Note { work, operator, origin: 0, reads, writes };
        Ok(profile::record(&mut self.profile, &mut self.recorder, note, command)?)
    }

    /// The command stream, for what is no command.
    pub(crate) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Records and submits everything pending.
    pub(crate) fn flush(&mut self, gpu: &Gpu, memory: &mut Memory) -> Result<Ticket, Error> {
        let recorded = self.record_pending(gpu, memory);
        let ticket = self.submit()?;
        recorded.map(|()| ticket)
    }

    /// As [`flush`](Self::flush), and what was written to mapped memory is visible when the ticket is done.
    pub(crate) fn flush_for_host(&mut self, gpu: &Gpu, memory: &mut Memory) -> Result<Ticket, Error> {
        self.policy.waited();
        self.stats.waits += 1;
        let recorded = self.record_pending(gpu, memory);
        if !self.host_visible {
            self.recorder.host_barrier();
            self.host_visible = true;
        }
        let ticket = self.submit()?;
        recorded.map(|()| ticket)
    }

    fn submit(&mut self) -> Result<Ticket, Error> {
        let _stage = measure::enter(Stage::Submit);
        let before = self.recorder.last_ticket();
        let result = self.recorder.submit();
        let ticket = self.recorder.last_ticket();
        self.ring.submitted(ticket);
        if ticket != before {
            self.stats.submits += 1;
        }
        Ok(result?)
    }

    /// Everything up to `ticket` is done.
    pub(crate) fn completed(&mut self, ticket: Ticket) {
        self.done = self.done.max(ticket);
        self.ring.retire(self.done);
        if self.done >= self.recorder.last_ticket() && self.recorder.recorded() == 0 {
            // The host waited for all there was, so nothing needs a barrier against it.
            self.hazards.clear();
        }
    }

    /// Submits everything and waits until the driver, too, is done with every segment.
    pub(crate) fn drain(&mut self, gpu: &Gpu, memory: &mut Memory) -> Result<(), Error> {
        let flushed = self.flush_for_host(gpu, memory);
        self.recorder.wait_idle()?;
        self.completed(self.recorder.last_ticket());
        flushed.map(drop)
    }
}

/// The host's view of a segment that was allocated mapped.
pub(crate) fn mapped(segment: &Segment) -> Result<NonNull<u8>, Error> {
    segment.host_ptr().ok_or_else(|| {
        Error::Vulkan(dml_vulkan::Error::Invalid {
            call: "Segment::host_ptr",
            what: "memory of a mapped class is not mapped".to_owned(),
        })
    })
}
