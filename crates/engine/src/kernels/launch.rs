//! One run of a kernel: what a caller hands to the queue.

use crate::kernels::cache::KernelRef;
use crate::memory::range::AddressRange;

/// One run of a kernel. Everything is copied before [`Device::launch`](crate::Device::launch) returns.
#[derive(Copy, Clone, Debug)]
pub struct Launch<'a> {
    /// What runs.
    pub kernel: &'a KernelRef,
    /// The parameter block: 8-byte addresses and scalars, laid out as the kernel declared them.
    pub params: &'a [u8],
    /// Bytes that the kernel reads from memory, at most 4 MiB; empty for most. Their address, a multiple of 16, is the
    /// kernel's first parameter, before `params`, and the block of parameters must then fit in push constants.
    pub table: &'a [u8],
    /// Workgroups in each dimension. None run if one is 0.
    pub groups: [u32; 3],
    /// Bytes that may be read. What is not named here is not ordered.
    pub reads: &'a [AddressRange],
    /// Bytes that may be written.
    pub writes: &'a [AddressRange],
    /// The operator, for error messages and the profiler.
    pub operator: &'static str,
}
