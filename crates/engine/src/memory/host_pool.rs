//! Mapped segments of one size for copies between host and device, kept for the next copy.

use crate::error::Error;
use dml_vulkan::{Gpu, MemoryClass, Segment, Ticket, Timeline};
use std::sync::{Mutex, PoisonError};

/// Copies up to this size go through the ring, or through one small segment and the copy kernel.
pub(crate) const SMALL_COPY: usize = 64 << 10;
/// Larger copies go through segments of this size.
const CHUNK: u64 = 8 << 20;

/// The segments that a device's copies go through.
pub(crate) struct HostPools {
    /// To the device, in chunks.
    pub(crate) staging: HostPool,
    /// To the host: [`SMALL_COPY`] bytes and the rest of two words.
    pub(crate) readback_small: HostPool,
    /// To the host, in chunks.
    pub(crate) readback_large: HostPool,
}

impl HostPools {
    pub(crate) fn new() -> Self {
        Self {
            staging: HostPool::new(MemoryClass::Staging, CHUNK, 4),
            readback_small: HostPool::new(MemoryClass::Readback, SMALL_COPY as u64 + 8, 64),
            readback_large: HostPool::new(MemoryClass::Readback, CHUNK, 4),
        }
    }

    /// Lets go of the large segments that the GPU is done with.
    pub(crate) fn release(&self, timeline: &Timeline) {
        self.staging.clear_done(timeline);
        self.readback_large.clear_done(timeline);
    }
}

/// Segments of one size and class.
pub(crate) struct HostPool {
    class: MemoryClass,
    bytes: u64,
    /// So many may be in use by the GPU before `take` waits.
    keep: usize,
    /// Segments with the ticket of their last use, oldest first.
    idle: Mutex<Vec<(Segment, Ticket)>>,
}

impl HostPool {
    fn new(class: MemoryClass, bytes: u64, keep: usize) -> Self {
        Self { class, bytes, keep, idle: Mutex::new(Vec::new()) }
    }

    /// Bytes of a segment.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A segment that the GPU is done with. Waits for one if it uses many already.
    pub(crate) fn take(&self, gpu: &Gpu, timeline: &Timeline) -> Result<Segment, Error> {
        let done = timeline.completed()?;
        let oldest = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            match idle.iter().position(|(_, ticket)| *ticket <= done) {
                Some(at) => return Ok(idle.remove(at).0),
                None if idle.len() >= self.keep => Some(idle.remove(0)),
                None => None,
            }
        };
        match oldest {
            Some((segment, ticket)) => {
                timeline.wait(ticket)?;
                Ok(segment)
            }
            None => Ok(gpu.allocate(self.bytes, self.class)?),
        }
    }

    /// Gives a segment back; the GPU is done with it at `ticket`. The pool grows with the threads that copy at a time.
    pub(crate) fn put(&self, segment: Segment, ticket: Ticket) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((segment, ticket));
    }

    /// Lets go of the segments that the GPU is done with.
    fn clear_done(&self, timeline: &Timeline) {
        if let Ok(done) = timeline.completed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, ticket)| *ticket > done);
        }
    }
}
