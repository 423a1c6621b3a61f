//! A thread of the execution units.

use crate::isa::file;
use crate::isa::instruction::Instruction;

/// Registers and channels.
pub struct Thread {
    /// The register file, by bytes.
    pub file: Box<[u8; file::BYTES]>,
    /// Accumulators, an element in each: integers with all their bits, or the bits of a float.
    pub accumulators: [u64; 64],
    /// The channels that are on.
    pub active: u32,
    /// The instruction that each other channel waits for.
    pub wait: [u32; 32],
    /// The channels that wait.
    pub waiting: u32,
    /// The next instruction.
    pub next: usize,
    /// Instructions that it has carried out.
    pub executed: u64,
    /// It has come to a barrier, and waits for the others.
    pub at_barrier: bool,
    /// It has told the others that it is at the barrier.
    pub has_signalled: bool,
    /// It has ended.
    pub done: bool,
}

/// What is in registers that nothing was written to.
const UNWRITTEN: u8 = 0xa5;

impl Thread {
    /// A thread with these channels.
    #[must_use]
    pub fn new(channels: u32) -> Self {
        let mut thread = Self {
            file: Box::new([UNWRITTEN; file::BYTES]),
            accumulators: [0; 64],
            active: channels,
            wait: [0; 32],
            waiting: 0,
            next: 0,
            executed: 0,
            at_barrier: false,
            has_signalled: false,
            done: false,
        };
        thread.file[file::GENERAL..].fill(0);
        thread.set_word(file::STATE + 8, channels);
        thread
    }

    /// 32 bits at a byte of the register file.
    #[inline(always)]
    #[must_use]
    pub fn word(&self, byte: usize) -> u32 {
        self.file.get(byte..byte + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// Writes 32 bits.
    #[inline(always)]
    pub fn set_word(&mut self, byte: usize, value: u32) {
        if let Some(bytes) = self.file.get_mut(byte..byte + 4) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// All flags: those of `f1` above those of `f0`.
    #[inline(always)]
    #[must_use]
    pub fn flags(&self) -> u64 {
        u64::from(self.word(file::FLAG)) | u64::from(self.word(file::FLAG + 4)) << 32
    }

    /// Writes the flags of channels from the instruction's first on, those of the mask alone.
    #[inline(always)]
    pub fn set_flags(&mut self, it: &Instruction, mask: u32, values: u32) {
        let at = u32::from(it.flag) + u32::from(it.first);
        let (mask, values) = (u64::from(mask) << at, u64::from(values) << at);
        let flags = self.flags() & !mask | values & mask;
        self.set_word(file::FLAG, flags as u32);
        self.set_word(file::FLAG + 4, (flags >> 32) as u32);
    }

    /// Bits of as many channels as an instruction has.
    #[inline(always)]
    #[must_use]
    pub fn all(it: &Instruction) -> u32 {
        u32::MAX >> (32 - u32::from(it.channels))
    }

    /// The predicate of each channel of an instruction, from its first on.
    #[must_use]
    pub fn predicate(&self, it: &Instruction) -> u32 {
        if it.predicate == 0 {
            return u32::MAX;
        }
        let flags = (self.flags() >> (u32::from(it.flag) + u32::from(it.first))) as u32;
        let values = match it.predicate {
            1 => flags,
            // Of groups of 2 to 32 channels any, or all.
            kind @ 4..=13 => {
                let size = 1 << (kind / 2 - 1);
                let group = u32::MAX >> (32 - size);
                let mut values = 0;
                for first in (0..32).step_by(size as usize) {
                    let flags = flags >> first & group;
                    let holds = if kind % 2 == 0 { flags != 0 } else { flags == group };
                    values |= if holds { group << first } else { 0 };
                }
                values
            }
            // Of all channels of both flags: not used in kernels.
            _ => 0,
        };
        if it.inverted { !values } else { values }
    }

    /// The channels of an instruction that it is carried out for, from its first on.
    #[inline(always)]
    #[must_use]
    pub fn mask(&self, it: &Instruction) -> u32 {
        let channels = if it.all { u32::MAX } else { self.active >> it.first };
        channels & Self::all(it)
    }
}
