//! Dispatches: what a packet and the registers before it ask for.

use crate::isa::Generation;

/// One launch of a compute shader.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Whose machine code.
    pub generation: Generation,
    /// The number of the launch, from 1, for messages and [`Memory::note_read`](crate::memory::Memory::note_read).
    pub number: u32,
    /// Where the code is.
    pub code: u64,
    /// Lanes of a wave: 32 or 64.
    pub wave: u32,
    /// User registers; [`Self::user_count`] of them are loaded into the first scalar registers.
    pub user: [u32; 16],
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Threads of a workgroup.
    pub threads: [u32; 3],
    /// One past the last workgroup of each axis.
    pub groups: [u32; 3],
    /// The first workgroup of each axis.
    pub start: [u32; 3],
    /// Scratch memory of a lane, in bytes.
    pub scratch: u32,
}

impl Dispatch {
    /// How many user registers the shader gets.
    #[must_use]
    pub fn user_count(&self) -> usize {
        (self.rsrc2 >> 1 & 31) as usize
    }

    /// Whether the workgroup's number along `axis` follows the user registers, those of lower axes first.
    /// On RDNA4 these are in trap registers instead.
    #[must_use]
    pub fn has_group(&self, axis: usize) -> bool {
        self.rsrc2 >> (7 + axis) & 1 != 0
    }

    /// Whether a register with the number of waves follows the numbers of the workgroup.
    #[must_use]
    pub fn has_group_size(&self) -> bool {
        self.rsrc2 >> 10 & 1 != 0
    }

    /// `FLOAT_MODE`: rounding of f32 in bits 0 and 1, of f16 and f64 in 2 and 3; subnormals of f32 kept as input (4)
    /// and output (5), of f16 and f64 (6, 7).
    #[must_use]
    pub fn float_mode(&self) -> u32 {
        self.rsrc1 >> 12 & 255
    }

    /// Shared memory of a workgroup, in bytes.
    #[must_use]
    pub fn shared(&self) -> u32 {
        (self.rsrc2 >> 15 & 511) * 512
    }

    /// Vector registers of a lane that the shader may use.
    #[must_use]
    pub fn vector_registers(&self) -> u32 {
        let unit = if self.wave == 32 { 8 } else { 4 };
        ((self.rsrc1 & 63) + 1) * unit
    }

    /// Threads of a workgroup.
    #[must_use]
    pub fn thread_count(&self) -> u32 {
        self.threads.iter().product()
    }

    /// Waves of a workgroup.
    #[must_use]
    pub fn waves(&self) -> u32 {
        self.thread_count().div_ceil(self.wave)
    }
}
