//! The GPU's address space.

pub use gpu_player::memory::Conflict;

/// The driver has buffers in the upper half, whose addresses have their upper bits all set.
pub type Memory = gpu_player::memory::Memory<0x80>;
