//! A capture in progress: the commands that it has collected, and the memory that they name.

use crate::backend::Gpu;
use crate::capture::constants::{Constant, Constants};
use crate::capture::draws::Draws;
use crate::commands::list::{CommandList, bytes_in_memory};
use crate::error::Error;
use crate::kernels::launch::Launch;
use crate::memory::device_memory::DeviceMemory;
use crate::memory::range::AddressRange;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::thread::ThreadId;

/// A capture in progress.
pub(crate) struct Capturing {
    pub(crate) id: u64,
    /// The device's index, for messages.
    device: usize,
    thread: ThreadId,
    /// The pool of memory that it allocates from.
    pub(crate) pool: u32,
    /// Launches, copies and frees. The staged bytes of copies lie in the constants.
    pub(crate) commands: CommandList,
    /// Uploads, indirect parameters and tables.
    pub(crate) constants: Constants,
    /// The random numbers that were drawn from each generator.
    pub(crate) draws: Draws,
    /// The address to which replays write the states of the generators, or 0.
    pub(crate) random: u64,
    /// A kernel may report an index error.
    pub(crate) reports: bool,
    /// Segments whose memory the commands access.
    pub(crate) pinned: FxHashSet<u32>,
    /// Blocks in use that were allocated by this capture.
    pub(crate) allocated: FxHashSet<u64>,
    /// The first error, because of which there will be no graph.
    pub(crate) failed: Option<Error>,
}

impl Capturing {
    /// A capture by the calling thread.
    pub(crate) fn new(device: usize, id: u64, pool: u32) -> Self {
        Self {
            id,
            device,
            thread: std::thread::current().id(),
            pool,
            commands: CommandList::for_batch(),
            constants: Constants::default(),
            draws: Draws::default(),
            random: 0,
            reports: false,
            pinned: FxHashSet::default(),
            allocated: FxHashSet::default(),
            failed: None,
        }
    }

    /// Whether the calling thread is the one that captures.
    pub(crate) fn is_own(&self) -> bool {
        self.thread == std::thread::current().id()
    }

    /// Fails the capture. The first error counts, and is what the end of the capture returns.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.failed.get_or_insert_with(|| error.clone());
        error
    }

    /// Fails after a failure: later commands would depend on a command that was not captured.
    /// Fails also when there is no room for more commands.
    fn check(&mut self) -> Result<(), Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.commands.is_full() {
            return Err(self.fail(Error::graph(self.device, "a graph is being captured that has too many commands")));
        }
        Ok(())
    }

    /// Whether some byte lies in a block that this capture allocated. A range may go over several
    /// blocks.
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
    ///
    /// # Errors
    /// The error that the capture failed with; no memory for parameters.
    pub(crate) fn launch(&mut self, gpu: &Gpu, memory: &mut DeviceMemory, launch: &Launch<'_>) -> Result<(), Error> {
        self.check()?;
        let in_memory = match bytes_in_memory(launch) {
            Some(bytes) => Some(self.constants.write(gpu, bytes)?.address),
            None => None,
        };
        self.pin(memory, launch.reads);
        self.pin(memory, launch.writes);
        self.commands.push_launch(launch, in_memory, None);
        Ok(())
    }

    /// Copies bytes to memory of the graph, for its commands to read.
    ///
    /// # Errors
    /// The error that the capture failed with; no memory.
    pub(crate) fn constant(&mut self, gpu: &Gpu, data: &[u8]) -> Result<Constant, Error> {
        self.check()?;
        self.constants.write(gpu, data)
    }

    /// Captures a copy of a constant to a range of device memory, which is in one segment.
    pub(crate) fn copy(&mut self, memory: &mut DeviceMemory, from: Constant, to: AddressRange) {
        if let Some((segment, offset)) = memory.locate_segment(to.start, to.end - to.start) {
            let segment = Arc::clone(segment);
            self.pin(memory, &[to]);
            self.commands.push_copy(from.staged, segment, offset, to);
        }
    }

    /// Keeps the segments of these ranges from being given back to the driver, as long as the graph
    /// lives.
    fn pin(&mut self, memory: &mut DeviceMemory, ranges: &[AddressRange]) {
        for range in ranges {
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
    }

    /// A block was freed.
    pub(crate) fn freed(&mut self, address: u64) {
        if self.allocated.remove(&address) || self.is_own() {
            self.commands.push_free(address);
        }
    }
}
