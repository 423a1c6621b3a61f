//! Pinned memory: host memory that the GPU reads and writes itself, so that a copy needs no staging
//! and runs while the host does other things.
//!
//! Its blocks come from the same kind of allocator as device memory, over mapped segments and by
//! host addresses. A block that is freed during a copy is handed out again when the copy is done.

use crate::backend::{Gpu, Segment, Timeline};
use crate::error::Error;
use crate::memory::allocator::{Allocator, COMMON, GrowError, Source};
use crate::memory::statistics::MemoryStats;
use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, Ticket};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pinned memory of one device.
pub(crate) struct PinnedMemory {
    blocks: Mutex<PinnedBlocks>,
    timeline: Timeline,
}

/// The state under the lock of pinned memory.
pub(crate) struct PinnedBlocks {
    allocator: Allocator<HostSegments>,
    /// The last copy of each block in use.
    copied: FxHashMap<u64, Ticket>,
    /// Blocks that were freed before their last copy was done.
    freed: Vec<(u64, Ticket)>,
}

struct HostSegments(Gpu);

impl Source for HostSegments {
    type Segment = Segment;
    type Error = dml_gpu::Error;

    fn allocate(&self, bytes: u64) -> Result<Segment, dml_gpu::Error> {
        self.0.allocate(bytes, MemoryClass::Staging)
    }

    fn address(segment: &Segment) -> u64 {
        segment.host_ptr().map_or(0, |p| p.as_ptr() as u64)
    }
}

impl PinnedBlocks {
    /// Frees the blocks whose copies are done.
    fn reclaim(&mut self, done: Ticket) {
        let Self { allocator, freed, .. } = self;
        freed.retain(|&(address, ticket)| ticket > done || !allocator.free(address, false));
    }

    /// The segment that holds `bytes` bytes from a host address, and the offset in it.
    pub(crate) fn locate(&self, address: u64, bytes: u64) -> Option<(&Segment, u64)> {
        self.allocator.locate_segment(address, bytes)
    }

    /// Records that the copy of `ticket` uses the block that contains `address`.
    pub(crate) fn used(&mut self, address: u64, ticket: Ticket) {
        if let Some((block, _)) = self.allocator.block(address) {
            self.copied.insert(block, ticket);
        }
    }
}

impl PinnedMemory {
    /// Pinned memory for copies with tickets of `timeline`.
    pub(crate) fn new(gpu: Gpu, timeline: Timeline) -> Self {
        let allocator = Allocator::new(HostSegments(gpu));
        let blocks = PinnedBlocks { allocator, copied: FxHashMap::default(), freed: Vec::new() };
        Self { blocks: Mutex::new(blocks), timeline }
    }

    /// Locks the blocks for a copy. Lock order: queue, then pinned memory.
    pub(crate) fn lock(&self) -> MutexGuard<'_, PinnedBlocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host address of a block of the cache, or of a new segment; with `modest`, of one that is
    /// no larger than needed.
    ///
    /// # Errors
    /// [`Error::HostOutOfMemory`]; the driver's error.
    pub(crate) fn allocate(&self, bytes: u64, modest: bool) -> Result<u64, Error> {
        let mut blocks = self.lock();
        blocks.reclaim(self.timeline.completed()?);
        if let Some(address) = blocks.allocator.take(COMMON, bytes) {
            return Ok(address);
        }
        blocks.allocator.grow(COMMON, bytes, modest).map_err(|e| match e {
            GrowError::Limit
            | GrowError::Source(dml_gpu::Error::OutOfMemory { .. } | dml_gpu::Error::TooManyAllocations { .. }) => {
                Error::HostOutOfMemory { requested: bytes }
            }
            GrowError::Source(e) => e.into(),
        })
    }

    /// Frees a block. Copies may still use it. False if no block in use begins there.
    pub(crate) fn free(&self, address: u64) -> bool {
        let mut blocks = self.lock();
        match blocks.copied.remove(&address) {
            // A lost device may still use the block, so the block is not used again.
            Some(ticket) if !self.timeline.completed().is_ok_and(|done| done >= ticket) => {
                blocks.freed.push((address, ticket));
                true
            }
            _ => blocks.allocator.free(address, false),
        }
    }

    /// Whether an address lies in a block in use.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.lock().allocator.block(address).is_some()
    }

    /// Releases the segments that hold no block in use. The caller must have drained the queue.
    ///
    /// # Errors
    /// [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn release(&self) -> Result<(), Error> {
        let mut blocks = self.lock();
        blocks.reclaim(self.timeline.completed()?);
        drop(blocks.allocator.release());
        Ok(())
    }

    /// Statistics. A freed block counts until its copies are known to be done.
    pub(crate) fn stats(&self) -> MemoryStats {
        let mut blocks = self.lock();
        if let Ok(done) = self.timeline.completed() {
            blocks.reclaim(done);
        }
        blocks.allocator.stats()
    }

    /// Sets the peaks to the current values, or the totals to 0.
    pub(crate) fn reset_stats(&self, peaks: bool) {
        let mut blocks = self.lock();
        let stats = blocks.allocator.stats_mut();
        if peaks { stats.reset_peaks() } else { stats.reset_totals() }
    }
}
