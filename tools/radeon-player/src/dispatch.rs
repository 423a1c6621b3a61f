//! Dispatches: what a packet and the registers before it ask for.

use crate::isa::Generation;
use crate::pm4::SHADER_REGISTER_COUNT;

/// One launch of a compute shader.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Whose machine code.
    pub generation: Generation,
    /// The number of the launch, from 1, for messages and
    /// [`Memory::note_read`](crate::memory::Memory::note_read).
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
    /// Threads along each axis of the last workgroup of that axis, which may be fewer; see
    /// [`Self::threads_of`].
    pub last: [u32; 3],
    /// Scratch memory of a lane, in bytes; 0 if the shader has none.
    pub scratch: u32,
}

/// Registers, as indices of words from the first register of shaders on.
mod register {
    pub const START: usize = 0x204;
    pub const NUM_THREAD: usize = 0x207;
    pub const PROGRAM_LOW: usize = 0x20c;
    pub const PROGRAM_HIGH: usize = 0x20d;
    pub const RSRC1: usize = 0x212;
    pub const RSRC2: usize = 0x213;
    pub const SCRATCH_SIZE: usize = 0x218;
    pub const RSRC3: usize = 0x228;
    pub const USER: usize = 0x240;
}

/// Of `COMPUTE_DISPATCH_INITIATOR`.
mod initiator {
    pub const PARTIAL_GROUPS: u32 = 1 << 1;
    pub const FROM_ZERO: u32 = 1 << 2;
    pub const COUNTS_ARE_THREADS: u32 = 1 << 5;
    pub const WAVES_OF_32: u32 = 1 << 15;
}

impl Dispatch {
    /// The dispatch that a packet asks for.
    #[must_use]
    pub fn new(
        generation: Generation,
        number: u32,
        registers: &[u32; SHADER_REGISTER_COUNT as usize],
        counts: [u32; 3],
        initiator: u32,
    ) -> Self {
        let three = |first: usize| std::array::from_fn::<u32, 3, _>(|axis| registers[first + axis]);
        let has = |flag: u32| initiator & flag != 0;
        let threads = three(register::NUM_THREAD).map(|word| word & 0xffff);
        let (mut groups, mut last) = (counts, threads);
        if has(initiator::COUNTS_ARE_THREADS) {
            for axis in 0..3 {
                let size = threads[axis].max(1);
                groups[axis] = counts[axis].div_ceil(size);
                if has(initiator::PARTIAL_GROUPS) && !counts[axis].is_multiple_of(size) {
                    last[axis] = counts[axis] % size;
                }
            }
        }
        let wave = if has(initiator::WAVES_OF_32) { 32 } else { 64 };
        let rsrc2 = registers[register::RSRC2];
        // Of a wave, in units of 64 words on RDNA3 and 256 on those before.
        let (bits, unit) = if generation >= Generation::Rdna3 { (0x7fff, 256) } else { (0x1fff, 1024) };
        let scratch = (registers[register::SCRATCH_SIZE] >> 12 & bits) * unit / wave;
        Self {
            generation,
            number,
            code: u64::from(registers[register::PROGRAM_HIGH] & 255) << 40
                | u64::from(registers[register::PROGRAM_LOW]) << 8,
            wave,
            user: std::array::from_fn(|k| registers[register::USER + k]),
            rsrc1: registers[register::RSRC1],
            rsrc2,
            rsrc3: registers[register::RSRC3],
            threads,
            groups,
            start: if has(initiator::FROM_ZERO) { [0; 3] } else { three(register::START) },
            last,
            scratch: if rsrc2 & 1 != 0 { scratch } else { 0 },
        }
    }

    /// How many workgroups there are.
    #[must_use]
    pub fn group_count(&self) -> u64 {
        (0..3).map(|axis| u64::from(self.groups[axis].saturating_sub(self.start[axis]))).product()
    }

    /// A workgroup by its number, of which the first axis runs fastest.
    #[must_use]
    pub fn group(&self, number: u64) -> [u32; 3] {
        let size = |axis: usize| u64::from(self.groups[axis] - self.start[axis]);
        let (x, rest) = (number % size(0), number / size(0));
        let id = [x, rest % size(1), rest / size(1)];
        std::array::from_fn(|axis| self.start[axis] + id[axis] as u32)
    }

    /// Threads of one workgroup along each axis.
    #[must_use]
    pub fn threads_of(&self, id: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| if id[axis] + 1 == self.groups[axis] { self.last[axis] } else { self.threads[axis] })
    }

    /// Whether a workgroup is one of those of which more is measured: some thirty that lie apart,
    /// or all if there are no more. An odd number of workgroups lies between them, so that they
    /// differ in each axis.
    #[must_use]
    pub fn is_sampled(&self, id: [u32; 3]) -> bool {
        let size = |axis: usize| u64::from(self.groups[axis] - self.start[axis]);
        let at = |axis: usize| u64::from(id[axis] - self.start[axis]);
        let number = at(0) + size(0) * (at(1) + size(1) * at(2));
        let apart = self.sampled_apart();
        number % apart == apart / 2
    }

    fn sampled_apart(&self) -> u64 {
        const SAMPLES: u64 = 32;
        (self.group_count() / SAMPLES) | 1
    }

    /// How many workgroups are sampled.
    #[must_use]
    pub fn sampled_count(&self) -> u64 {
        let apart = self.sampled_apart();
        (self.group_count() + apart - 1 - apart / 2) / apart
    }

    /// Whether a workgroup has both compute units of a pair, with the shared memory of both.
    #[must_use]
    pub fn both_units(&self) -> bool {
        self.rsrc1 >> 29 & 1 != 0
    }

    /// How many user registers the shader gets.
    #[must_use]
    pub fn user_count(&self) -> usize {
        ((self.rsrc2 >> 1 & 31) as usize).min(self.user.len())
    }

    /// Whether the workgroup's number along `axis` follows the user registers, those of lower axes
    /// first. On RDNA4 these are in trap registers instead.
    #[must_use]
    pub fn has_group(&self, axis: usize) -> bool {
        self.rsrc2 >> (7 + axis) & 1 != 0
    }

    /// Whether a register with the number of waves follows the numbers of the workgroup.
    #[must_use]
    pub fn has_group_size(&self) -> bool {
        self.rsrc2 >> 10 & 1 != 0
    }

    /// `FLOAT_MODE`: rounding of f32 in bits 0 and 1, of f16 and f64 in 2 and 3; subnormals of f32
    /// kept as input (4) and output (5), of f16 and f64 (6, 7).
    #[must_use]
    pub fn float_mode(&self) -> u32 {
        self.rsrc1 >> 12 & 255
    }

    /// The register MODE as a wave starts: [`Self::float_mode`], `DX10_CLAMP` in bit 8 and `IEEE`
    /// in bit 9, which RDNA4 has not.
    #[must_use]
    pub fn mode(&self) -> u32 {
        let more =
            if self.generation < Generation::Rdna4 { self.rsrc1 >> 21 & 1 | (self.rsrc1 >> 23 & 1) << 1 } else { 0 };
        self.float_mode() | more << 8
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
        self.threads.iter().fold(1, |count: u32, &axis| count.saturating_mul(axis))
    }

    /// Waves of a workgroup.
    #[must_use]
    pub fn waves(&self) -> u32 {
        self.thread_count().div_ceil(self.wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> [u32; SHADER_REGISTER_COUNT as usize] {
        let mut registers = [0; SHADER_REGISTER_COUNT as usize];
        registers[register::PROGRAM_LOW] = 0x12;
        registers[register::PROGRAM_HIGH] = 0x80;
        registers[register::NUM_THREAD..][..3].copy_from_slice(&[16, 8, 1]);
        registers[register::RSRC2] = 1 | 11 << 1 | 1 << 7 | 24 << 15;
        registers[register::SCRATCH_SIZE] = 8 << 12 | 32;
        registers[register::START] = 3;
        registers
    }

    #[test]
    fn registers_become_a_dispatch() {
        let it = Dispatch::new(Generation::Rdna3, 1, &registers(), [5, 2, 1], 0x8041);
        assert_eq!((it.code, it.wave, it.scratch), (0x8000_0000_1200, 32, 64));
        assert_eq!((it.user_count(), it.shared(), it.waves()), (11, 12288, 4));
        assert_eq!([0, 1, 2].map(|axis| it.has_group(axis)), [true, false, false]);
        assert_eq!((it.group_count(), it.group(0), it.group(3)), (4, [3, 0, 0], [4, 1, 0]));
    }

    #[test]
    fn some_workgroups_are_sampled() {
        for counts in [[1, 1, 1], [31, 1, 1], [64, 64, 1], [7, 9, 100]] {
            let it = Dispatch::new(Generation::Rdna3, 1, &registers(), counts.map(|count| count + 3), 0x8001);
            let it = Dispatch { start: [3; 3], ..it };
            let sampled = (0..it.group_count()).filter(|&number| it.is_sampled(it.group(number))).count() as u64;
            assert_eq!(sampled, it.sampled_count());
            assert!((1..=64).contains(&sampled), "{sampled} of {counts:?}");
        }
    }

    #[test]
    fn the_last_workgroup_may_be_partial() {
        let it = Dispatch::new(Generation::Rdna3, 1, &registers(), [40, 8, 1], 0x67);
        assert_eq!((it.groups, it.start, it.wave), ([3, 1, 1], [0; 3], 64));
        assert_eq!(it.threads_of([1, 0, 0]), [16, 8, 1]);
        assert_eq!(it.threads_of([2, 0, 0]), [8, 8, 1]);
    }
}
