//! One run of a kernel, as callers hand it to the queue.

use crate::kernels::kernel::KernelRef;
use crate::memory::range::AddressRange;

/// Cost model: operations charged per byte accessed. Slow GPUs do 8 to 25 operations in the time of
/// moving one byte.
const PER_BYTE: u64 = 8;

/// Cost model: the operations charged for accessing a range.
#[inline]
pub(crate) fn work_of(range: AddressRange) -> u64 {
    (range.end - range.start) * PER_BYTE
}

/// One run of a kernel. [`Device::launch`](crate::Device::launch) copies everything before it
/// returns.
#[derive(Copy, Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a KernelRef,
    /// The parameter block: 8-byte addresses and scalars, laid out as the kernel declared them.
    pub params: &'a [u8],
    /// Bytes that the kernel reads from memory, at most 4 MiB; usually empty. Their address, a
    /// multiple of 16, is the kernel's first parameter, before `params`, and the parameter block
    /// must then fit in push constants.
    pub table: &'a [u8],
    /// Workgroups in each dimension. If one is 0, nothing runs.
    pub groups: [u32; 3],
    /// Ranges that may be read. Accesses outside `reads` and `writes` are not ordered.
    pub reads: &'a [AddressRange],
    /// Ranges that may be written.
    pub writes: &'a [AddressRange],
    /// The approximate number of operations, 0 for few. An operation is an addition or a
    /// multiplication of float32; each accessed byte counts as 8 operations. Launches that take
    /// long on a slow GPU are split: see
    /// [`Device::set_submission_work`](crate::Device::set_submission_work).
    pub work: u64,
    /// The operator, for error messages and the profiler.
    pub operator: &'static str,
}
