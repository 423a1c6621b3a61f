//! One run of a kernel: what a caller hands to the queue.

use crate::kernels::kernel::KernelRef;
use crate::memory::range::AddressRange;

/// Operations that a byte counts as which a launch accesses: slow GPUs do 8 to 25 while they move one.
const PER_BYTE: u64 = 8;

/// What accessing a range counts as.
#[inline]
pub(crate) fn work_of(range: AddressRange) -> u64 {
    (range.end - range.start) * PER_BYTE
}

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
    /// About how many operations it does, 0 for few. An operation is an addition or a multiplication of float32; each byte that is
    /// accessed counts as 8. What takes long on a slow GPU is cut: see [`Device::set_submission_work`](crate::Device::set_submission_work).
    pub work: u64,
    /// The operator, for error messages and the profiler.
    pub operator: &'static str,
}
