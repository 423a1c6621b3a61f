//! The GPU's address space.

/// The driver has its own state from address 0 on, and memory of the program below the last 16 TiB
/// of 48 bits.
pub type Memory = gpu_player::memory::Memory<0xef>;
