//! Requests of the kernel interface that the player answers or reads: those of DRM and of i915.

use std::ffi::c_ulong;

pub use gpu_player::drm::*;

pub const I915_GEM_CREATE: c_ulong = 0x5b;
pub const I915_GEM_MMAP: c_ulong = 0x5e;
pub const I915_GEM_MMAP_OFFSET: c_ulong = 0x64;
pub const I915_GEM_EXECBUFFER2: c_ulong = 0x69;
pub const I915_GEM_USERPTR: c_ulong = 0x73;
pub const I915_GET_RESET_STATS: c_ulong = 0x72;
pub const I915_GEM_CREATE_EXT: c_ulong = 0x7c;

/// The first fields of both requests that make a buffer.
#[repr(C)]
pub struct GemCreate {
    pub bytes: u64,
    pub handle: u32,
    pub pad: u32,
}

#[repr(C)]
pub struct GemMmap {
    pub handle: u32,
    pub pad: u32,
    pub offset: u64,
    pub bytes: u64,
    /// The answer.
    pub address: u64,
    pub flags: u64,
}

#[repr(C)]
pub struct GemMmapOffset {
    pub handle: u32,
    pub pad: u32,
    /// The answer: an offset for `mmap`.
    pub offset: u64,
    pub flags: u64,
    pub extensions: u64,
}

#[repr(C)]
pub struct ResetStats {
    pub context: u32,
    pub flags: u32,
    pub resets: u32,
    /// How many batches of the context were running at a reset.
    pub active: u32,
    pub pending: u32,
    pub pad: u32,
}

#[repr(C)]
pub struct ExecObject {
    pub handle: u32,
    pub relocation_count: u32,
    pub relocations: u64,
    pub alignment: u64,
    /// Where the buffer is in the GPU's address space.
    pub address: u64,
    pub flags: u64,
    pub reserved: [u64; 2],
}
/// Of [`ExecObject::flags`]: the driver has chosen the address.
pub const OBJECT_PINNED: u64 = 1 << 4;

#[repr(C)]
pub struct ExecBuffer {
    pub objects: u64,
    pub object_count: u32,
    pub batch_start: u32,
    pub batch_bytes: u32,
    pub unused: [u32; 2],
    /// Of fences or, with [`EXEC_EXTENSIONS`], 0.
    pub fence_count: u32,
    /// Fences, or the first extension.
    pub fences: u64,
    pub flags: u64,
    pub context: u64,
    pub reserved: u64,
}
/// The batch is the first of the objects, otherwise the last.
pub const EXEC_BATCH_FIRST: u64 = 1 << 18;
pub const EXEC_FENCE_ARRAY: u64 = 1 << 19;
pub const EXEC_EXTENSIONS: u64 = 1 << 21;

#[repr(C)]
pub struct ExecFence {
    pub handle: u32,
    pub flags: u32,
}
/// Of [`ExecFence::flags`]: signalled when the batch is done.
pub const FENCE_SIGNAL: u32 = 2;

/// An extension of [`ExecBuffer`]; all are of this kind.
#[repr(C)]
pub struct ExecTimelineFences {
    pub next: u64,
    pub name: u32,
    pub flags: u32,
    pub reserved: [u32; 4],
    pub count: u64,
    pub fences: u64,
    /// A point for each fence, 0 for binary ones.
    pub points: u64,
}
pub const EXTENSION_TIMELINE_FENCES: u32 = 0;
