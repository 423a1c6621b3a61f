//! What is submitted together: commands in the order of the calls, with what they need until they
//! are recorded.

use crate::backend::{Recorder, Recording, Segment, TimestampId};
use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::memory::range::AddressRange;
use crate::profile::activity::Origin;
use crate::submit::intervals::IntervalSet;
use crate::threads::ThreadNumber;
use dml_gpu::Ticket;
use dml_gpu::traits::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What an entry does.
#[derive(Debug)]
pub(crate) enum Command {
    Launch {
        kernel: KernelRef,
        /// Where the push constants are in the byte arena.
        push: u32,
        push_len: u32,
        groups: [u32; 3],
    },
    /// Some of the workgroups of a launch that is cut.
    Part(Box<LaunchPart>),
    /// Bytes of the ring to a segment, by the copy command: for lengths and addresses that the copy
    /// kernel cannot take.
    Upload { from: u64, to: Arc<Segment>, offset: u64, bytes: u64 },
    /// A block was freed: what earlier entries wrote there is dead unless one of them reads it.
    Free { address: u64 },
    /// Records the time for an event.
    Event(Arc<Marker>),
    /// Runs a graph. It reads and writes more than its entry names: no command may move across it.
    Replay(Arc<Replay>),
}

/// See [`Command::Part`].
#[derive(Debug)]
pub(crate) struct LaunchPart {
    pub(crate) kernel: KernelRef,
    /// As the launch's.
    pub(crate) push: u32,
    pub(crate) push_len: u32,
    /// The index of the first workgroup, and how many.
    pub(crate) base: [u32; 3],
    pub(crate) groups: [u32; 3],
    /// Which launch it is of: the number of those that were cut before.
    pub(crate) launch: u64,
}

/// What a graph's run consists of, or as much of it as is submitted at once.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) recording: Recording,
    pub(crate) launches: u32,
    pub(crate) barriers: u32,
    pub(crate) work: u64,
    /// What is accessed after the last barrier.
    pub(crate) read_last: IntervalSet,
    pub(crate) written_last: IntervalSet,
}

/// A place between commands that an event waits for.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    /// The ticket that completes it, which may be one that was not submitted yet.
    ticket: AtomicU64,
    stamp: OnceLock<TimestampId>,
}

impl Marker {
    /// It is reached when `ticket` is done.
    pub(crate) fn set(&self, ticket: Ticket) {
        self.ticket.store(ticket.0, Ordering::Release);
    }

    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.ticket.load(Ordering::Acquire))
    }

    /// Its time, once it was recorded for timing.
    pub(crate) fn stamp(&self) -> Option<&TimestampId> {
        self.stamp.get()
    }

    /// Records its time.
    pub(crate) fn record(&self, recorder: &mut Recorder) -> Result<(), Error> {
        let _ = self.stamp.set(recorder.timestamp()?);
        Ok(())
    }
}

/// A command, or what must be known in its place, and what is common to all.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) operator: &'static str,
    /// In the range arena: the reads, then the writes.
    pub(crate) ranges: u32,
    pub(crate) reads: u16,
    pub(crate) writes: u16,
    /// Whose it is.
    pub(crate) thread: ThreadNumber,
    /// In the origins, counted from 1; 0 when there is no profile.
    pub(crate) origin: u32,
}

/// Entries that one submission carries out.
pub(crate) struct Batch {
    /// That submission's, from the moment at which nothing more is added.
    pub(crate) ticket: Ticket,
    pub(crate) entries: Vec<Entry>,
    /// Arenas of the entries; they keep their capacity.
    pub(crate) bytes: Vec<u8>,
    pub(crate) ranges: Vec<AddressRange>,
    /// What enqueued the entries, for the profile if there is one.
    pub(crate) origins: Vec<Origin>,
    /// Commands among the entries.
    pub(crate) commands: u32,
    /// What they do: see [`Launch::work`](crate::Launch::work).
    pub(crate) work: u64,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            ticket: Ticket(0),
            entries: Vec::with_capacity(256),
            bytes: Vec::with_capacity(16 << 10),
            ranges: Vec::with_capacity(1024),
            origins: Vec::new(),
            commands: 0,
            work: 0,
        }
    }

    /// The first kernel that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<&KernelRef> {
        self.entries.iter().find_map(|entry| match &entry.command {
            Command::Launch { kernel, .. } if !kernel.is_compiled() => Some(kernel),
            Command::Part(part) if !part.kernel.is_compiled() => Some(&part.kernel),
            _ => None,
        })
    }

    /// Empties it. The kernels and events of its entries are let go.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.ranges.clear();
        self.origins.clear();
        self.commands = 0;
        self.work = 0;
    }

    /// An entry's reads and writes.
    pub(crate) fn ranges(&self, entry: &Entry) -> (&[AddressRange], &[AddressRange]) {
        let from = entry.ranges as usize;
        self.ranges[from..from + usize::from(entry.reads + entry.writes)].split_at(usize::from(entry.reads))
    }

    /// The push constants at `push`.
    pub(crate) fn push(&self, push: u32, len: u32) -> &[u8] {
        &self.bytes[push as usize..(push + len) as usize]
    }
}
