//! Requests of the kernel interface that the player answers or reads: those of DRM and of amdgpu.

use std::ffi::c_ulong;

pub use gpu_player::drm::*;

pub const AMDGPU_GEM_CREATE: c_ulong = 0x40;
pub const AMDGPU_GEM_MMAP: c_ulong = 0x41;
pub const AMDGPU_CTX: c_ulong = 0x42;
pub const AMDGPU_CS: c_ulong = 0x44;
pub const AMDGPU_GEM_VA: c_ulong = 0x48;

/// What is asked; the answer takes its place, with the handle first.
#[repr(C)]
pub struct GemCreate {
    pub bytes: u64,
    pub alignment: u64,
    pub domains: u64,
    pub flags: u64,
}

/// The handle that is asked about, in the lower half; the answer is an offset for `mmap`.
#[repr(C)]
pub struct GemMmap {
    pub handle_or_offset: u64,
}

#[repr(C)]
pub struct Context {
    pub operation: u32,
    pub flags: u32,
    pub context: u32,
    pub priority: i32,
}
pub const CONTEXT_QUERY_STATE: u32 = 3;
pub const CONTEXT_QUERY_STATE_2: u32 = 4;
/// Of the first word of the answer to the second kind of query: there was a reset, and this context
/// is to blame.
pub const CONTEXT_RESET: u64 = 1;
pub const CONTEXT_GUILTY: u64 = 4;

#[repr(C)]
pub struct GemVa {
    pub handle: u32,
    pub pad: u32,
    pub operation: u32,
    pub flags: u32,
    pub address: u64,
    pub offset: u64,
    pub bytes: u64,
}
/// What newer drivers add to [`GemVa`].
#[repr(C)]
pub struct GemVaTimeline {
    pub va: GemVa,
    pub point: u64,
    pub out: u32,
    pub count: u32,
    pub inputs: u64,
}
pub const VA_MAP: u32 = 1;
pub const VA_UNMAP: u32 = 2;
pub const VA_CLEAR: u32 = 3;
pub const VA_REPLACE: u32 = 4;

/// What is asked; the answer, a number of the submission, takes its place.
#[repr(C)]
pub struct Submission {
    pub context: u32,
    pub buffers: u32,
    pub chunk_count: u32,
    pub flags: u32,
    pub chunks: u64,
}

#[repr(C)]
pub struct Chunk {
    pub id: u32,
    pub words: u32,
    pub data: u64,
}
pub const CHUNK_COMMANDS: u32 = 1;
pub const CHUNK_SYNCOBJ_OUT: u32 = 5;
pub const CHUNK_TIMELINE_SIGNAL: u32 = 9;

#[repr(C)]
pub struct ChunkCommands {
    pub pad: u32,
    pub flags: u32,
    pub address: u64,
    pub bytes: u32,
    /// 0 for graphics, 1 for compute, 2 for DMA.
    pub engine: u32,
    pub instance: u32,
    pub ring: u32,
}

pub const ENGINE_GRAPHICS: u32 = 0;
pub const ENGINE_COMPUTE: u32 = 1;
pub const ENGINE_DMA: u32 = 2;

#[repr(C)]
pub struct ChunkSyncobj {
    pub handle: u32,
    pub flags: u32,
    pub point: u64,
}
