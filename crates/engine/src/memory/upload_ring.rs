//! The ring of mapped memory for small uploads, indirect parameters and tables.

use crate::backend::{Gpu, Segment};
use crate::error::Error;
use crate::memory::mapped::mapped;
use crate::memory::ring::Ring;
use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, Ticket};
use std::ptr::NonNull;
use std::sync::Arc;

const BYTES: u64 = 8 << 20;
/// The most bytes of one region.
pub(crate) const MAX_REGION_BYTES: u64 = BYTES / 2;
/// Regions begin at multiples of this.
const ALIGN: u64 = 16;

/// A region that was written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Region {
    /// From the beginning of the ring's memory.
    pub(crate) offset: u64,
    /// GPU address.
    pub(crate) address: u64,
}

/// The ring of one device.
pub(crate) struct UploadRing {
    ring: Ring,
    memory: Arc<Segment>,
    host: NonNull<u8>,
}

// SAFETY: `host` points into `memory`, which lives as long and belongs to no thread; writing takes
// `&mut self`.
unsafe impl Send for UploadRing {}

impl UploadRing {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self, Error> {
        let memory = gpu.allocate(BYTES, MemoryClass::Upload)?;
        let host = mapped(&memory)?;
        Ok(Self { ring: Ring::new(BYTES), memory: Arc::new(memory), host })
    }

    /// The memory that regions lie in.
    pub(crate) fn memory(&self) -> &Arc<Segment> {
        &self.memory
    }

    /// Copies bytes, at most [`MAX_REGION_BYTES`], to a region that belongs to the pending batch;
    /// `None` if there is no room.
    pub(crate) fn write(&mut self, data: &[u8]) -> Option<Region> {
        let offset = self.ring.take(data.len() as u64, ALIGN)?;
        // SAFETY: `take` returned a region of `data.len()` bytes inside the ring, whose size is the
        // segment's, and no pending or running work reads it. `data` is other memory: nobody has a
        // slice of the ring's.
        unsafe {
            let to = self.host.add(offset as usize);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to.as_ptr(), data.len());
        }
        Some(Region { offset, address: self.memory.address() + offset })
    }

    /// All regions without a ticket belong to this one.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        self.ring.submitted(ticket);
    }

    /// All commands up to `done` are complete.
    pub(crate) fn retire(&mut self, done: Ticket) {
        self.ring.retire(done);
    }

    /// The ticket to wait for to get room; `None` if all of it belongs to the pending batch.
    pub(crate) fn oldest(&self) -> Option<Ticket> {
        self.ring.oldest()
    }
}
