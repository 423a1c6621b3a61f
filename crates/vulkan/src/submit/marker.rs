//! The word in host memory by which the GPU says how far it has come (`VK_AMD_buffer_marker`).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;
use crate::memory::{MemoryClass, Segment};
use crate::ticket::Ticket;

/// The low half of the last complete ticket, written by the GPU.
pub(super) struct MarkerWord {
    segment: Segment,
    word: NonNull<AtomicU32>,
}

// SAFETY: the word lies in the segment's mapped memory, which lives as long as this does, and is
// only read, atomically.
unsafe impl Send for MarkerWord {}
// SAFETY: as above.
unsafe impl Sync for MarkerWord {}

impl MarkerWord {
    /// `None` where the adapter has no markers.
    pub(super) fn new(device: &Arc<DeviceShared>) -> Result<Option<Self>, Error> {
        if device.marker.is_none() {
            return Ok(None);
        }
        let segment = Segment::new(device, 64, MemoryClass::Readback)?;
        Ok(segment.host_ptr().map(|pointer| {
            let word = pointer.cast::<AtomicU32>();
            // SAFETY: mapped memory is aligned to at least 64 bytes, and the GPU does not know it yet.
            unsafe { word.as_ref() }.store(0, Ordering::Release);
            Self { segment, word }
        }))
    }

    /// Has a submission end with the marker of its ticket.
    pub(super) fn record(&self, encoder: &mut Encoder, ticket: Ticket) {
        // SAFETY: the segment has room for the word, and lives as long as the timeline, which outlives its submissions:
        // the recorder waits for them before it lets go of it.
        unsafe { encoder.write_marker(self.segment.buffer, ticket.0 as u32) };
    }

    /// The low half of the last complete ticket.
    pub(super) fn read(&self) -> u32 {
        // SAFETY: the word lives as long as the segment; GPU writes of 4 aligned bytes do not tear.
        unsafe { self.word.as_ref() }.load(Ordering::Acquire)
    }
}
