//! What a capture has collected so far.

use crate::backend::Gpu;
use crate::capture::constants::{Constant, Constants};
use crate::capture::draws::Draws;
use crate::error::Error;
use crate::kernels::kernel::KernelRef;
use crate::kernels::launch::Launch;
use crate::memory::device_memory::DeviceMemory;
use crate::memory::range::AddressRange;
use rustc_hash::FxHashSet;
use std::thread::ThreadId;

type Span = std::ops::Range<usize>;

/// One captured command.
#[derive(Clone)]
pub(crate) enum Node {
    Launch {
        kernel: KernelRef,
        /// Its push constants in the byte arena.
        push: Span,
        groups: [u32; 3],
        /// As [`Launch::work`].
        work: u64,
        accesses: Accesses,
    },
    /// Bytes of a constant to a segment, for lengths and addresses that the copy kernel cannot
    /// take.
    Copy { constant: usize, from: u64, slot: u32, to: u64, bytes: u64, accesses: Accesses },
    /// A block was freed: what was written there need not be written if nothing reads it later.
    Free { address: u64 },
}

/// Where a node's ranges are in the range arena.
#[derive(Clone)]
pub(crate) struct Accesses {
    reads: Span,
    writes: Span,
}

impl Node {
    /// Reads and writes.
    pub(crate) fn ranges<'r>(&self, arena: &'r [AddressRange]) -> (&'r [AddressRange], &'r [AddressRange]) {
        match self {
            Self::Launch { accesses, .. } | Self::Copy { accesses, .. } => {
                (&arena[accesses.reads.clone()], &arena[accesses.writes.clone()])
            }
            Self::Free { .. } => (&[], &[]),
        }
    }

    /// Waits for the node's kernel, or compiles it.
    pub(crate) fn compile(&self, gpu: &Gpu) -> Result<(), Error> {
        match self {
            Self::Launch { kernel, .. } => kernel.pipeline(gpu).map(drop),
            Self::Copy { .. } | Self::Free { .. } => Ok(()),
        }
    }
}

/// A capture in progress.
pub(crate) struct Capturing {
    pub(crate) id: u64,
    thread: ThreadId,
    /// The pool that it allocates from.
    pub(crate) pool: u32,
    pub(crate) nodes: Vec<Node>,
    /// Launches and copies among them.
    pub(crate) commands: u32,
    /// Arenas of the nodes.
    pub(crate) bytes: Vec<u8>,
    pub(crate) ranges: Vec<AddressRange>,
    /// Uploads, indirect parameters and tables.
    pub(crate) constants: Constants,
    /// What was drawn from each generator.
    pub(crate) draws: Draws,
    /// Where replays put the generators' states, or 0.
    pub(crate) random: u64,
    /// A kernel may report an index error.
    pub(crate) reports: bool,
    /// Segments that the nodes name.
    pub(crate) pinned: FxHashSet<u32>,
    /// Blocks in use that were allocated by this capture.
    pub(crate) allocated: FxHashSet<u64>,
    /// Why there will be no graph.
    pub(crate) failed: Option<Error>,
}

impl Capturing {
    /// A capture by the calling thread.
    pub(crate) fn new(id: u64, pool: u32) -> Self {
        Self {
            id,
            thread: std::thread::current().id(),
            pool,
            nodes: Vec::new(),
            commands: 0,
            bytes: Vec::new(),
            ranges: Vec::new(),
            constants: Constants::default(),
            draws: Draws::default(),
            random: 0,
            reports: false,
            pinned: FxHashSet::default(),
            allocated: FxHashSet::default(),
            failed: None,
        }
    }

    /// It is the calling thread that captures.
    pub(crate) fn mine(&self) -> bool {
        self.thread == std::thread::current().id()
    }

    /// Notes an error. The first one counts, and is what the end of the capture returns.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.failed.get_or_insert_with(|| error.clone());
        error
    }

    /// What is captured after a failure would go on from something that did not happen.
    fn sound(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Some byte lies in a block that this capture allocated. A range may go over several blocks.
    pub(crate) fn owns(&self, memory: &DeviceMemory, range: AddressRange) -> bool {
        let mut at = range.start;
        while at < range.end {
            let Some((start, bytes)) = memory.block(at) else { return false };
            if memory.pool_of(at) == Some(self.pool) && self.allocated.contains(&start) {
                return true;
            }
            at = start + bytes;
        }
        false
    }

    /// Captures a launch.
    pub(crate) fn launch(&mut self, gpu: &Gpu, memory: &mut DeviceMemory, launch: &Launch<'_>) -> Result<(), Error> {
        self.sound()?;
        let from = self.bytes.len();
        if launch.kernel.has_indirect_parameters() {
            let place = self.constants.write(gpu, launch.params)?;
            self.bytes.extend_from_slice(&place.address.to_ne_bytes());
        } else {
            if !launch.table.is_empty() {
                let place = self.constants.write(gpu, launch.table)?;
                self.bytes.extend_from_slice(&place.address.to_ne_bytes());
            }
            self.bytes.extend_from_slice(launch.params);
        }
        let accesses = self.access(memory, launch.reads, launch.writes);
        let push = from..self.bytes.len();
        self.commands += 1;
        let (kernel, groups, work) = (launch.kernel.clone(), launch.groups, launch.work);
        self.nodes.push(Node::Launch { kernel, push, groups, work, accesses });
        Ok(())
    }

    /// Keeps bytes for the graph's commands to read.
    pub(crate) fn constant(&mut self, gpu: &Gpu, data: &[u8]) -> Result<Constant, Error> {
        self.sound()?;
        self.constants.write(gpu, data)
    }

    /// Captures a copy of a constant of `bytes` bytes to an address of the device.
    pub(crate) fn copy(&mut self, memory: &mut DeviceMemory, from: Constant, dst: u64, bytes: u64) {
        if let Some((slot, to)) = memory.locate(dst, bytes) {
            let accesses = self.access(memory, &[], &[AddressRange::new(dst, bytes)]);
            let (constant, from) = (from.segment, from.offset);
            self.commands += 1;
            self.nodes.push(Node::Copy { constant, from, slot, to, bytes, accesses });
        }
    }

    fn access(&mut self, memory: &mut DeviceMemory, reads: &[AddressRange], writes: &[AddressRange]) -> Accesses {
        for range in reads.iter().chain(writes) {
            // Tensors that are neighbours may be named as one range, across segments that are
            // neighbours.
            let mut at = range.start;
            while let Some((slot, end)) = memory.segment_end(at) {
                if self.pinned.insert(slot) {
                    memory.pin(at);
                }
                if end >= range.end {
                    break;
                }
                at = end;
            }
        }
        self.note(reads, writes)
    }

    /// Keeps ranges in the arena.
    pub(crate) fn note(&mut self, reads: &[AddressRange], writes: &[AddressRange]) -> Accesses {
        let mut keep = |ranges: &[AddressRange]| {
            let from = self.ranges.len();
            self.ranges.extend_from_slice(ranges);
            from..self.ranges.len()
        };
        Accesses { reads: keep(reads), writes: keep(writes) }
    }

    /// A block was freed.
    pub(crate) fn freed(&mut self, address: u64) {
        if self.allocated.remove(&address) || self.mine() {
            self.nodes.push(Node::Free { address });
        }
    }
}
