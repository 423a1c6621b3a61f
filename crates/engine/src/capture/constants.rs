//! The constants of a graph, bytes that its commands read and nobody writes: uploads, indirect
//! parameters and tables.

use crate::backend::{Gpu, Segment};
use crate::commands::list::StagedBytes;
use crate::error::Error;
use crate::memory::mapped::mapped;
use dml_gpu::MemoryClass;
use dml_gpu::traits::*;

/// The least bytes of a segment.
const SEGMENT: u64 = 256 << 10;
/// Constants begin at multiples of this.
const ALIGN: u64 = 16;

/// The segments of a graph's constants.
#[derive(Default)]
pub(crate) struct Constants {
    segments: Vec<Segment>,
    /// Bytes used of the last segment.
    used: u64,
}

/// Where the bytes of a constant are.
pub(crate) struct Constant {
    /// For a copy command. Its segment is an index into [`Constants::into_segments`].
    pub(crate) staged: StagedBytes,
    /// For a kernel.
    pub(crate) address: u64,
}

impl Constants {
    /// Copies `data`, some megabytes at most, to a segment.
    ///
    /// # Errors
    /// No memory; [`dml_gpu::Error::DeviceLost`].
    pub(crate) fn write(&mut self, gpu: &Gpu, data: &[u8]) -> Result<Constant, Error> {
        let bytes = data.len() as u64;
        if self.segments.last().is_none_or(|segment| self.used + bytes > segment.bytes()) {
            self.segments.push(gpu.allocate(bytes.max(SEGMENT), MemoryClass::Upload)?);
            self.used = 0;
        }
        let at = self.segments.len() - 1;
        let (segment, offset) = (&self.segments[at], self.used);
        let host = mapped(segment)?;
        // SAFETY: the segment is mapped and has room for `data` from `offset` on, as was just seen
        // to; no work knows these bytes yet. `data` is other memory: nobody has a slice of the
        // segment.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), host.as_ptr().add(offset as usize), data.len()) };
        self.used = (offset + bytes).next_multiple_of(ALIGN);
        let staged = StagedBytes { segment: at as u32, offset: offset as u32 };
        Ok(Constant { staged, address: segment.address() + offset })
    }

    /// The segments, by the numbers of [`StagedBytes::segment`].
    pub(crate) fn into_segments(self) -> Vec<Segment> {
        self.segments
    }
}
