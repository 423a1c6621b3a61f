//! Accounting of the segments of a device, for limits that the driver may not enforce.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ash::vk;

use crate::adapter::MemoryLayout;
use crate::error::Error;

/// The segments of a device: their number, and the bytes taken from each heap. A driver accounts
/// for its own heaps; the heaps of an imitated profile are accounted for here.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    segments: AtomicU32,
    heaps: [AtomicU64; vk::MAX_MEMORY_HEAPS],
}

/// One segment in the count.
#[derive(Debug)]
pub(crate) struct Entry(Arc<Ledger>);

/// Bytes of a heap, while a segment holds them.
#[derive(Debug)]
pub(crate) struct Charge {
    ledger: Arc<Ledger>,
    heap: u32,
    bytes: u64,
}

impl Ledger {
    /// Counts one more segment.
    ///
    /// # Errors
    /// [`Error::TooManyAllocations`] if there are already `most` segments.
    pub(crate) fn enter(self: &Arc<Self>, most: u32) -> Result<Entry, Error> {
        let more = |count: u32| (count < most).then_some(count + 1);
        match self.segments.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Entry(Arc::clone(self))),
            Err(_) => Err(Error::TooManyAllocations { limit: most }),
        }
    }

    /// Takes bytes of a heap; `None` if fewer are left.
    pub(crate) fn charge(self: &Arc<Self>, layout: &MemoryLayout, heap: u32, bytes: u64) -> Option<Charge> {
        if layout.imitated {
            let size = layout.heap_bytes(heap);
            let more = |used: u64| used.checked_add(bytes).filter(|&used| used <= size);
            self.heaps[heap as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        }
        let bytes = if layout.imitated { bytes } else { 0 };
        Some(Charge { ledger: Arc::clone(self), heap, bytes })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.segments.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.heaps[self.heap as usize].fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_counted_until_they_are_dropped() {
        let ledger = Arc::new(Ledger::default());
        let (first, second) = (ledger.enter(2), ledger.enter(2));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(ledger.enter(2).err(), Some(Error::TooManyAllocations { limit: 2 }));
        drop(first);
        assert!(ledger.enter(2).is_ok());
    }
}
