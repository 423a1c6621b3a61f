//! Commands in the order of the calls, and the packing of their parameters and memory ranges.

use crate::backend::Segment;
use crate::commands::marker::Marker;
use crate::commands::replay::Replay;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::Launch;
use crate::memory::range::AddressRange;
use crate::profile::activity::{Origin, UPLOAD};
use crate::threads::ThreadNumber;
use std::sync::Arc;

/// What a command does.
#[derive(Clone, Debug)]
pub(crate) enum CommandKind {
    /// Runs a kernel.
    Launch {
        kernel: KernelRef,
        push: PushConstants,
        groups: [u32; 3],
        /// As [`Launch::work`].
        work: u64,
    },
    /// Runs some of the workgroups of a launch that was split.
    LaunchPart(Box<LaunchPart>),
    /// Copies staged bytes to a segment by the copy command: for lengths and addresses that the
    /// copy kernel cannot take.
    Copy { from: StagedBytes, to: Arc<Segment>, to_offset: u64, bytes: u64 },
    /// Nothing runs: the block at this address was freed. Contents of it that no later command
    /// reads need not be written.
    Free { address: u64 },
    /// Records the time for an event.
    Timestamp(Arc<Marker>),
    /// Runs a graph. It accesses more memory than the command names, so no command may move across
    /// it.
    Replay(Arc<Replay>),
}

/// Some of the workgroups of a launch. See [`CommandKind::LaunchPart`].
#[derive(Clone, Debug)]
pub(crate) struct LaunchPart {
    pub(crate) kernel: KernelRef,
    pub(crate) push: PushConstants,
    /// The number of workgroups of this part.
    pub(crate) groups: [u32; 3],
    pub(crate) of: PartOf,
}

/// Which part of which launch.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PartOf {
    /// The index of the part's first workgroup.
    pub(crate) base: [u32; 3],
    /// The number of the launch among the launches of the device that were split. All parts of a
    /// launch have the same.
    pub(crate) launch: u64,
}

/// Push constants in the byte arena of a list.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PushConstants {
    start: u32,
    len: u32,
}

impl PushConstants {
    /// Where they begin in [`CommandList::bytes`].
    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }
}

/// Bytes of the host that a copy command reads, in memory that the GPU can read: the ring of
/// uploads, or the constants of a graph.
#[derive(Copy, Clone, Debug)]
pub(crate) struct StagedBytes {
    /// The index of the segment among the staging segments of the list. For a batch there is one,
    /// the ring's.
    pub(crate) segment: u32,
    /// Bytes from the beginning of the segment, which has at most some megabytes.
    pub(crate) offset: u32,
}

/// Where a command's reads, and then its writes, are in the range arena of a list.
#[derive(Copy, Clone, Debug)]
struct Accesses {
    start: u32,
    reads: u16,
    writes: u16,
}

/// A command, and what all kinds of commands have in common.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: CommandKind,
    /// The operator that enqueued the command, for error messages and the profiler.
    pub(crate) operator: &'static str,
    accesses: Accesses,
    /// The thread that enqueued the command, which is told of its errors.
    pub(crate) thread: ThreadNumber,
    /// An index among the origins, counted from 1; 0 when there is no profile.
    origin: u32,
}

// The pending batch is written by every operator.
const _: () = assert!(size_of::<Command>() <= 72);

/// Commands in the order of the calls. Push constants and ranges lie in arenas, so that appending a
/// command allocates nothing once the arenas have grown.
#[derive(Default)]
pub(crate) struct CommandList {
    commands: Vec<Command>,
    /// Push constants.
    bytes: Vec<u8>,
    /// Reads and writes.
    ranges: Vec<AddressRange>,
    /// What enqueued the commands, if there is a profile.
    origins: Vec<Origin>,
    /// Launches and copies, the ones of replays included.
    count: u32,
    work: u64,
    profiled: bool,
}

/// The bytes of a launch that must lie in memory, if there are any: its table, or its parameters if
/// they are indirect. A launch does not have both.
#[inline]
pub(crate) fn bytes_in_memory<'l>(launch: &Launch<'l>) -> Option<&'l [u8]> {
    if launch.kernel.has_indirect_parameters() {
        Some(launch.params)
    } else if launch.table.is_empty() {
        None
    } else {
        Some(launch.table)
    }
}

impl CommandList {
    /// An empty list with room for the commands of a common batch.
    pub(crate) fn for_batch() -> Self {
        Self {
            commands: Vec::with_capacity(256),
            bytes: Vec::with_capacity(16 << 10),
            ranges: Vec::with_capacity(1024),
            ..Self::default()
        }
    }

    /// An empty list with room for the commands of another list.
    pub(crate) fn with_room_for(other: &Self) -> Self {
        Self {
            commands: Vec::with_capacity(other.commands.len()),
            bytes: Vec::with_capacity(other.bytes.len()),
            ranges: Vec::with_capacity(other.ranges.len()),
            ..Self::default()
        }
    }

    // ---- appending

    /// Appends a launch, or a part of one. `in_memory` is the address of its [`bytes_in_memory`],
    /// which the push constants begin with.
    #[inline]
    pub(crate) fn push_launch(&mut self, launch: &Launch<'_>, in_memory: Option<u64>, part: Option<PartOf>) {
        let start = self.bytes.len() as u32;
        if let Some(address) = in_memory {
            self.bytes.extend_from_slice(&address.to_ne_bytes());
        }
        if !launch.kernel.has_indirect_parameters() {
            self.bytes.extend_from_slice(launch.params);
        }
        let push = PushConstants { start, len: self.bytes.len() as u32 - start };
        let (kernel, groups, work) = (launch.kernel.clone(), launch.groups, launch.work);
        let kind = match part {
            None => CommandKind::Launch { kernel, push, groups, work },
            Some(of) => CommandKind::LaunchPart(Box::new(LaunchPart { kernel, push, groups, of })),
        };
        self.work = self.work.saturating_add(work);
        self.count += 1;
        self.push(kind, launch.operator, launch.reads, launch.writes);
    }

    /// Appends a copy of staged bytes to `to_offset` in a segment, which is `range`.
    pub(crate) fn push_copy(&mut self, from: StagedBytes, to: Arc<Segment>, to_offset: u64, range: AddressRange) {
        let bytes = range.end - range.start;
        self.count += 1;
        self.push(CommandKind::Copy { from, to, to_offset, bytes }, UPLOAD, &[], &[range]);
    }

    /// Appends a free.
    pub(crate) fn push_free(&mut self, address: u64) {
        self.push(CommandKind::Free { address }, "free", &[], &[]);
    }

    /// Appends a timestamp for a marker.
    pub(crate) fn push_timestamp(&mut self, marker: Arc<Marker>) {
        self.push(CommandKind::Timestamp(marker), "event", &[], &[]);
    }

    /// Appends a run of a graph.
    pub(crate) fn push_replay(&mut self, replay: &Arc<Replay>) {
        self.count += replay.launches;
        self.work = self.work.saturating_add(replay.work);
        self.push(CommandKind::Replay(Arc::clone(replay)), "graph", &[], &[]);
    }

    /// Appends a command of another list.
    pub(crate) fn push_from(&mut self, other: &Self, command: &Command) {
        let mut kind = command.kind.clone();
        if let CommandKind::Launch { push, work, .. } = &mut kind {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(other.push_constants(*push));
            push.start = start;
            self.work = self.work.saturating_add(*work);
        }
        self.count += u32::from(!matches!(kind, CommandKind::Free { .. }));
        let (reads, writes) = other.ranges(command);
        self.push(kind, command.operator, reads, writes);
    }

    #[inline]
    fn push(&mut self, kind: CommandKind, operator: &'static str, reads: &[AddressRange], writes: &[AddressRange]) {
        let start = self.ranges.len() as u32;
        self.ranges.extend_from_slice(reads);
        self.ranges.extend_from_slice(writes);
        let accesses = Accesses { start, reads: reads.len() as u16, writes: writes.len() as u16 };
        if self.profiled {
            self.origins.push(Origin::here());
        }
        let origin = self.origins.len() as u32;
        self.commands.push(Command { kind, operator, accesses, thread: ThreadNumber::here(), origin });
        if let Some(origin) = self.origins.last_mut() {
            origin.enqueued();
        }
    }

    /// Keeps what enqueues each command from now on, or not.
    pub(crate) fn set_profiled(&mut self, profiled: bool) {
        self.profiled = profiled;
    }

    /// Removes all commands, and keeps the memory of the arenas.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.bytes.clear();
        self.ranges.clear();
        self.origins.clear();
        self.count = 0;
        self.work = 0;
    }

    // ---- reading

    /// The commands.
    #[inline]
    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Launches and copies, the ones of replays included. Frees and timestamps do not count.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The operations that the commands do, as [`Launch::work`] counts them.
    #[inline]
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// The arenas are half as long as their indices can address: no more commands may be appended.
    /// A capture can become that long; a batch cannot.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len().max(self.ranges.len()) > u32::MAX as usize / 2
    }

    /// The arena of the push constants.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The push constants of a command.
    #[inline]
    pub(crate) fn push_constants(&self, push: PushConstants) -> &[u8] {
        &self.bytes[push.start as usize..(push.start + push.len) as usize]
    }

    /// The reads and the writes of a command.
    #[inline]
    pub(crate) fn ranges(&self, command: &Command) -> (&[AddressRange], &[AddressRange]) {
        let Accesses { start, reads, writes } = command.accesses;
        let start = start as usize;
        self.ranges[start..start + usize::from(reads + writes)].split_at(usize::from(reads))
    }

    /// What enqueued a command; without a profile, the calling thread, now.
    pub(crate) fn origin(&self, command: &Command) -> Origin {
        self.origins.get((command.origin as usize).wrapping_sub(1)).copied().unwrap_or_else(Origin::here)
    }

    /// The first kernel that is not compiled.
    pub(crate) fn uncompiled(&self) -> Option<&KernelRef> {
        self.commands.iter().filter_map(Command::kernel).find(|kernel| !kernel.is_compiled())
    }
}

impl Command {
    /// The kernel that the command runs.
    pub(crate) fn kernel(&self) -> Option<&KernelRef> {
        match &self.kind {
            CommandKind::Launch { kernel, .. } => Some(kernel),
            CommandKind::LaunchPart(part) => Some(&part.kernel),
            CommandKind::Copy { .. }
            | CommandKind::Free { .. }
            | CommandKind::Timestamp(_)
            | CommandKind::Replay(_) => None,
        }
    }
}

/// The operator, and what it runs.
impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.operator)?;
        match &self.kind {
            CommandKind::Launch { kernel, groups, .. } => write!(f, "{}, {groups:?}", kernel.name()),
            CommandKind::LaunchPart(part) => {
                write!(f, "{}, {:?} from {:?} on", part.kernel.name(), part.groups, part.of.base)
            }
            CommandKind::Copy { bytes, .. } => write!(f, "copy of {bytes} bytes"),
            CommandKind::Free { address } => write!(f, "free of {address:#x}"),
            CommandKind::Timestamp(_) => write!(f, "timestamp"),
            CommandKind::Replay(replay) => write!(f, "{} launches", replay.launches),
        }
    }
}
