//! The word in host memory to which the GPU writes its progress (`VK_AMD_buffer_marker`).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, Ticket};

use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;
use crate::memory::Segment;

/// The low half of the last complete ticket, written by the GPU.
pub(super) struct MarkerWord {
    segment: Segment,
    word: NonNull<AtomicU32>,
}

// SAFETY: the word lies in the segment's mapped memory, which lives as long as `self` and belongs
// to no thread.
unsafe impl Send for MarkerWord {}
// SAFETY: as above; the host only accesses the word atomically.
unsafe impl Sync for MarkerWord {}

impl MarkerWord {
    /// `None` if the adapter has no markers.
    pub(super) fn new(device: &Arc<DeviceShared>) -> Result<Option<Self>, Error> {
        if device.marker.is_none() {
            return Ok(None);
        }
        let segment = Segment::new(device, 64, MemoryClass::Readback)?;
        Ok(segment.host_ptr().map(|pointer| {
            let word = pointer.cast::<AtomicU32>();
            // SAFETY: the segment has 64 bytes and is mapped at a multiple of 64
            // (`minMemoryMapAlignment` is at least that); an atomic has no invalid bits. The GPU
            // does not use the word yet.
            unsafe { word.as_ref() }.store(0, Ordering::Release);
            Self { segment, word }
        }))
    }

    /// Ends a submission with the marker of its ticket.
    pub(super) fn record(&self, encoder: &mut Encoder, ticket: Ticket) {
        // SAFETY: segment and encoder belong to the recorder's device. The segment has room for the
        // word and lives as long as the timeline, which outlives its submissions: the recorder
        // waits for them before it releases the timeline, and if it cannot, the device counts as
        // hung, and its segments are leaked.
        unsafe { encoder.write_marker(self.segment.buffer, ticket.0 as u32) };
    }

    /// The last complete ticket, given that `known` is complete.
    pub(super) fn read(&self, known: u64) -> u64 {
        // SAFETY: the word is aligned, initialised, and mapped as long as the segment lives; a
        // GPU's writes of 4 aligned bytes do not tear.
        later(known, unsafe { self.word.as_ref() }.load(Ordering::Acquire))
    }
}

/// The ticket whose low half is `word`, less than 2^31 after `known`. The result is `known` if the
/// word is older: the host may have learned of a ticket in another way before its marker is
/// visible.
fn later(known: u64, word: u32) -> u64 {
    let ahead = word.wrapping_sub(known as u32) as i32;
    known + u64::from(ahead.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::later;

    #[test]
    fn a_ticket_is_told_from_its_low_half() {
        for known in [0, 7, u64::from(u32::MAX), (5 << 32) - 1, 5 << 32, (5 << 32) + 7] {
            for ahead in [0, 1, 1000, i32::MAX as u64] {
                assert_eq!(later(known, (known + ahead) as u32), known + ahead);
            }
        }
    }

    #[test]
    fn a_word_that_lags_is_no_progress() {
        for known in [7, 5 << 32, (5 << 32) + 7] {
            assert_eq!(later(known, (known - 1) as u32), known);
            assert_eq!(later(known, (known - 7) as u32), known);
        }
    }
}
