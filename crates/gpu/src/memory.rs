//! Segments, and what memory is for.

use std::fmt::Debug;
use std::ptr::NonNull;

/// What memory is for. All mapped memory is coherent: it needs no flush and no invalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryClass {
    /// The fastest for the GPU. Not mapped.
    Device,
    /// Written by the CPU, in order; read by the GPU. In device memory where the host can write to
    /// it. The CPU must not read it: 16 KiB can take half a millisecond.
    Upload,
    /// Written by the GPU, read by the CPU: in host memory, cached.
    Readback,
    /// Host memory that CPU and GPU both read and write: pinned tensors, copies in both directions.
    Staging,
}

/// GPU memory with a fixed address. Dropping it frees the memory at once; the caller sees to it that the GPU is done with
/// it.
pub trait Segment: Debug + Send + Sync + 'static {
    /// The address of the first byte, as kernels take it. Never 0; those after it are the other bytes', and no
    /// two segments of a device that exist at a time share one.
    fn address(&self) -> u64;

    /// The size in bytes.
    fn bytes(&self) -> u64;

    /// Where the host sees the first byte; `None` for [`MemoryClass::Device`].
    fn host_ptr(&self) -> Option<NonNull<u8>>;
}
