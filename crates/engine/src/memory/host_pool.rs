//! Mapped segments of one size for copies between host and device, cached for the next copy.

use crate::backend::{Gpu, Segment, Timeline};
use crate::error::Error;
use crate::interrupt;
use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, Ticket};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Copies up to this size go through the ring, or through one small segment and the copy kernel.
pub(crate) const SMALL_COPY: usize = 64 << 10;
/// Larger copies go through segments of this size.
const CHUNK: u64 = 8 << 20;

/// The segments that a device uses for copies.
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

    /// Releases the large segments that the GPU is done with.
    pub(crate) fn release(&self, timeline: &Timeline) {
        self.staging.clear_done(timeline);
        self.readback_large.clear_done(timeline);
    }
}

/// Segments of one size and class.
pub(crate) struct HostPool {
    class: MemoryClass,
    bytes: u64,
    /// The number of segments that the GPU may use before `take` waits.
    keep: usize,
    /// Segments with the ticket of their last use, oldest first.
    idle: Mutex<Vec<(Arc<Segment>, Ticket)>>,
}

/// A segment of a pool. Dropping it returns it to the pool on every path, so that no segment is
/// freed that the GPU may use.
pub(crate) struct PooledSegment<'p> {
    pool: &'p HostPool,
    segment: Arc<Segment>,
    /// The ticket of the last use.
    ticket: Ticket,
}

impl PooledSegment<'_> {
    /// The GPU is done with the segment at `ticket`.
    pub(crate) fn used(&mut self, ticket: Ticket) {
        self.ticket = ticket;
    }
}

impl Deref for PooledSegment<'_> {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        &self.segment
    }
}

impl Drop for PooledSegment<'_> {
    fn drop(&mut self) {
        // The pool grows with the number of threads that copy at the same time.
        self.pool.lock().push((Arc::clone(&self.segment), self.ticket));
    }
}

impl HostPool {
    fn new(class: MemoryClass, bytes: u64, keep: usize) -> Self {
        Self { class, bytes, keep, idle: Mutex::new(Vec::new()) }
    }

    /// Bytes of a segment.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A segment that the GPU is not using. Waits for one if many are in use; the caller must not
    /// hold a lock of the engine.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::DeviceLost`]; [`dml_gpu::Error::OutOfMemory`].
    pub(crate) fn take(&self, gpu: &Gpu, timeline: &Timeline) -> Result<PooledSegment<'_>, Error> {
        self.take_unless(gpu, timeline, interrupt::requested)
    }

    /// As [`take`](Self::take), without interruption: for commands of an operator that is enqueued
    /// as a whole. The work in flight is bounded, and so is this wait.
    ///
    /// # Errors
    /// As [`take`](Self::take), except [`Error::Interrupted`].
    pub(crate) fn take_in_any_case(&self, gpu: &Gpu, timeline: &Timeline) -> Result<PooledSegment<'_>, Error> {
        self.take_unless(gpu, timeline, || false)
    }

    fn take_unless(
        &self,
        gpu: &Gpu,
        timeline: &Timeline,
        stop: impl FnMut() -> bool,
    ) -> Result<PooledSegment<'_>, Error> {
        let done = timeline.completed()?;
        let of_pool = |(segment, ticket)| PooledSegment { pool: self, segment, ticket };
        let oldest = {
            let mut idle = self.lock();
            match idle.iter().position(|(_, ticket)| *ticket <= done) {
                Some(at) => return Ok(of_pool(idle.remove(at))),
                None if idle.len() >= self.keep => Some(of_pool(idle.remove(0))),
                None => None,
            }
        };
        match oldest {
            Some(segment) => {
                interrupt::unless(timeline.wait_unless(segment.ticket, stop)?)?;
                Ok(segment)
            }
            None => Ok(of_pool((Arc::new(gpu.allocate(self.bytes, self.class)?), Ticket(0)))),
        }
    }

    /// Releases the segments that the GPU is done with.
    fn clear_done(&self, timeline: &Timeline) {
        if let Ok(done) = timeline.completed() {
            self.lock().retain(|(_, ticket)| *ticket > done);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<Segment>, Ticket)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_wait_that_fails_leaves_the_segment_in_the_pool() {
        let gpu = crate::backend::adapters().unwrap()[0].open().unwrap();
        const BYTES: u64 = 4 << 20;
        let pool = HostPool::new(MemoryClass::Readback, BYTES, 2);
        let source = gpu.allocate(BYTES, MemoryClass::Device).unwrap();
        // Made after the memory, so dropped before it, also when an assertion fails.
        let mut recorder = gpu.recorder().unwrap();
        let timeline = recorder.timeline().clone();
        let mut segments = [(); 2].map(|()| pool.take(&gpu, &timeline).unwrap());
        // A second or more of work, of which the waits below see the beginning.
        for _ in 0..12_000 {
            recorder.copy(&source, 0, &segments[0], 0, BYTES).unwrap();
            recorder.barrier();
        }
        let done = recorder.submit().unwrap();
        segments.iter_mut().for_each(|segment| segment.used(done));
        let addresses = segments.each_ref().map(|segment| segment.address());
        drop(segments);
        let in_pool = || pool.lock().iter().map(|(segment, _)| segment.address()).collect::<Vec<_>>();
        assert!(matches!(pool.take_unless(&gpu, &timeline, || true).map(drop), Err(Error::Interrupted)));
        assert!(in_pool().iter().all(|address| addresses.contains(address)) && in_pool().len() == 2);
        gpu.simulate_loss();
        assert!(pool.take(&gpu, &timeline).is_err());
        assert_eq!(in_pool().len(), 2);
        drop(recorder); // waits for the work, which in fact goes on
    }
}
