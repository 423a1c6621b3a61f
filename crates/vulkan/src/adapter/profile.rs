//! Imitates another adapter, by hiding features of the present one and lowering its limits.
//!
//! `TORCH_DML_PROFILE` names one of [`super::profiles`]. A profile changes the driver's
//! [report](super::reported) before anything is derived from it, so a hidden feature is not enabled
//! either. A profile only takes away: a limit that is already lower stays, and so does a missing
//! feature.

use ash::vk;
use dml_gpu::RegisterFile;

/// An imitated adapter.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The value of `TORCH_DML_PROFILE`.
    pub(super) name: &'static str,
    /// The adapters that it represents, and the publication of its figures.
    pub(super) source: &'static str,
    /// The Vulkan version. Extensions that became part of later versions are hidden as well.
    pub(super) api: u32,
    /// Features that the adapter does not have.
    pub(super) lacks: &'static [Feature],
    pub(super) limits: Limits,
    /// The heaps and memory types; `None` leaves them unchanged.
    pub(super) memory: Option<MemoryShape>,
}

/// A feature that a profile can hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    Float64,
    Float16,
    Int64,
    Int16,
    Int8,
    Storage16,
    Storage8,
    AtomicInt64,
    AtomicInt64Shared,
    AtomicFloat,
    /// Subgroup reductions and scans.
    SubgroupArithmetic,
    /// Subgroup shuffles and ballots.
    SubgroupShuffle,
    SubgroupSizeControl,
    CooperativeMatrix,
    IntegerDot,
    MemoryModel,
    SharedMemoryLayout,
    ScalarBlockLayout,
    FloatControls,
    /// Subnormal numbers are kept.
    DenormPreserve,
    /// Those of float32 are.
    DenormPreserveFloat32,
    Timestamps,
    CalibratedTimestamps,
    MemoryBudget,
    BufferMarker,
}

/// Limits that a profile lowers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Invocations of a workgroup.
    pub(super) invocations: u32,
    /// Invocations of a workgroup along each axis.
    pub(super) workgroup: [u32; 3],
    /// Shared memory of a workgroup, bytes.
    pub(super) shared_memory: u32,
    /// Registers, if kernels are chosen by them.
    pub(super) registers: Option<RegisterFile>,
    /// Push constants, bytes.
    pub(super) push_constants: u32,
    /// A storage buffer's range, bytes.
    pub(super) storage_range: u32,
    /// One allocation, bytes.
    pub(super) allocation: u64,
    /// Allocations at a time.
    pub(super) allocations: u32,
    /// Nanoseconds of a tick of the timestamps.
    pub(super) timestamp_period: Option<f32>,
}

/// Heaps and memory types.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryShape {
    /// Device and host share their memory.
    pub(super) unified: bool,
    pub(super) heaps: &'static [(HeapSize, vk::MemoryHeapFlags)],
    /// Flags, and index of the heap.
    pub(super) types: &'static [(vk::MemoryPropertyFlags, u32)],
}

/// How large a heap is.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeapSize {
    /// The size of the largest heap of the present adapter.
    Whole,
    /// A number of bytes.
    Bytes(u64),
}
