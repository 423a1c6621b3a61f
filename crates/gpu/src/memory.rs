//! Segments and classes of memory.

use std::fmt::Debug;
use std::ptr::NonNull;

/// The purpose of memory. All mapped memory is coherent: it needs no flush and no invalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryClass {
    /// The fastest memory for the GPU. Not mapped.
    Device,
    /// Written by the CPU in order and read by the GPU; in device memory if the host can write to
    /// it. The CPU must not read it: reading 16 KiB can take half a millisecond.
    Upload,
    /// Written by the GPU, read by the CPU: in host memory, cached.
    Readback,
    /// Host memory that CPU and GPU both read and write: pinned memory, for copies in both
    /// directions.
    Staging,
}

/// GPU memory with a fixed address. Dropping a segment frees the memory at once; the caller ensures
/// that the GPU is done with it.
pub trait Segment: Debug + Send + Sync + 'static {
    /// The address of the first byte, as kernels use it; the other bytes follow. Never 0. Segments
    /// of one device that exist at the same time share no address.
    fn address(&self) -> u64;

    /// The size in bytes.
    fn bytes(&self) -> u64;

    /// The host address of the first byte; `None` for [`MemoryClass::Device`].
    fn host_ptr(&self) -> Option<NonNull<u8>>;
}
