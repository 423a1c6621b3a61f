//! A wave: its registers, and how instructions read and write them.
//!
//! A vector register is a row of lanes. Instructions read whole rows, compute all lanes, and write
//! those that are on: loops over a fixed number of lanes, which the compiler turns into the
//! processor's vector instructions.

use super::float::{float_to_half, half_to_float};
use crate::isa::instruction::{Instruction, Operand};

/// Number of vcc.
pub const VCC: u16 = 106;
/// Number of the register that reads as zero and takes anything.
pub const NULL: u16 = 124;
/// Number of m0.
pub const M0: u16 = 125;
/// Number of exec.
pub const EXEC: u16 = 126;

/// Vector registers: 256, and those that hold lanes or parts that were taken for an instruction.
const REGISTERS: usize = 259;

/// What registers hold that nothing was written to: as a number, one that shows.
const UNWRITTEN: u32 = 0xa5a5_a5a5;

/// A value of each lane.
pub type Row<const N: usize, T = u32> = [T; N];

/// A wave of `N` lanes.
pub struct Wave<const N: usize> {
    /// Scalar registers by their number in encodings: vcc, m0 and exec are among them.
    pub scalars: [u32; 128],
    /// Vector registers, and one beyond for what lanes exchange.
    pub vectors: Box<[Row<N>; REGISTERS]>,
    /// The condition bit.
    pub scc: bool,
    /// Index of the next instruction.
    pub next: usize,
    /// Where the program goes on, if `next` is no index: an address.
    pub jump: u64,
    /// The wave's number in its workgroup.
    pub index: u32,
    /// The register MODE: how floats round (the lowest four bits) and which subnormals are kept
    /// (the next four); the rest is not modelled.
    pub mode: u32,
    /// Instructions that it has carried out up to its last barrier.
    pub executed: u64,
    /// The wave has ended.
    pub done: bool,
    /// What is known of its registers, in strict runs.
    pub strict: Option<Box<super::strict::Strict>>,
    /// When its instructions would issue, in workgroups that are sampled.
    pub timeline: Option<Box<super::timeline::Timeline>>,
    /// The wave stands at a barrier, or has ended.
    pub waiting: bool,
    /// Rows that instructions compute in: their sources' and their result's. They have no meaning
    /// between instructions.
    pub rooms: Option<Box<[[Row<N>; 2]; 4]>>,
    /// Exec that `mask` was made for.
    masked: u64,
    mask: Row<N>,
}

impl<const N: usize> Wave<N> {
    /// Lanes of a wave that is full.
    pub const ALL: u64 = if N == 64 { u64::MAX } else { (1 << N) - 1 };

    /// A wave with registers that hold what nobody meant.
    #[must_use]
    pub fn new() -> Self {
        let vectors = vec![[UNWRITTEN; N]; REGISTERS].into_boxed_slice();
        Self {
            scalars: [UNWRITTEN; 128],
            vectors: vectors.try_into().unwrap_or_else(|_| unreachable!("as many as were made")),
            scc: false,
            next: 0,
            jump: 0,
            index: 0,
            mode: 0,
            waiting: false,
            done: false,
            executed: 0,
            strict: None,
            timeline: None,
            rooms: Some(Box::new([[[0; N]; 2]; 4])),
            masked: 0,
            mask: [0; N],
        }
    }

    /// Makes a wave that ran a new one, of a shader that has so many vector registers.
    pub fn reset(&mut self, registers: usize) {
        self.vectors[..registers.min(256)].fill([UNWRITTEN; N]);
        self.scalars.fill(UNWRITTEN);
        (self.scc, self.next, self.waiting, self.done) = (false, 0, false, false);
        (self.executed, self.strict, self.timeline) = (0, None, None);
        // What stopped in the middle of an instruction did not give them back.
        self.rooms.get_or_insert_with(|| Box::new([[[0; N]; 2]; 4]));
    }

    /// Goes on at an address.
    pub fn jump_to(&mut self, address: u64) {
        (self.next, self.jump) = (usize::MAX, address);
    }

    /// Which lanes are on.
    #[inline(always)]
    #[must_use]
    pub fn exec(&self) -> u64 {
        let low = u64::from(self.scalars[EXEC as usize]);
        if N == 64 { low | u64::from(self.scalars[EXEC as usize + 1]) << 32 } else { low }
    }

    /// Turns lanes on and off.
    #[inline(always)]
    pub fn set_exec(&mut self, lanes: u64) {
        self.scalars[EXEC as usize] = lanes as u32;
        if N == 64 {
            self.scalars[EXEC as usize + 1] = (lanes >> 32) as u32;
        }
    }

    /// The row of all ones for lanes that are on and zero for others.
    #[inline(always)]
    fn mask(&mut self) -> &Row<N> {
        let exec = self.exec();
        if exec != self.masked {
            self.masked = exec;
            for lane in 0..N {
                self.mask[lane] = 0u32.wrapping_sub((exec >> lane) as u32 & 1);
            }
        }
        &self.mask
    }

    // Scalars.

    /// 32 bits of a scalar operand, or the constant.
    #[inline(always)]
    #[must_use]
    pub fn s32(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Scalar(NULL) | Operand::None => 0,
            Operand::Scalar(register) => self.scalars[register as usize & 127],
            Operand::Scc => u32::from(self.scc),
            Operand::Inline(number) => number.word,
            Operand::Literal(word) => word,
            // Of a vector register its first lane that is on.
            Operand::Vector(register) => self.vectors[register as usize][self.exec().trailing_zeros() as usize % N],
        }
    }

    /// 64 bits of a scalar operand, or the constant as an integer.
    #[inline(always)]
    #[must_use]
    pub fn s64(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Scalar(NULL) | Operand::None => 0,
            Operand::Scalar(register) => {
                let register = register as usize & 126;
                u64::from(self.scalars[register]) | u64::from(self.scalars[register + 1]) << 32
            }
            Operand::Scc => u64::from(self.scc),
            Operand::Inline(number) => number.double,
            Operand::Literal(word) => u64::from(word),
            Operand::Vector(_) => 0,
        }
    }

    /// Writes 32 bits of a scalar register.
    #[inline(always)]
    pub fn put_s32(&mut self, to: Operand, value: u32) {
        if let Operand::Scalar(register) = to
            && register != NULL
        {
            self.scalars[register as usize & 127] = value;
        }
    }

    /// Writes 64 bits of a scalar register.
    #[inline(always)]
    pub fn put_s64(&mut self, to: Operand, value: u64) {
        if let Operand::Scalar(register) = to
            && register != NULL
        {
            let register = register as usize & 126;
            self.scalars[register] = value as u32;
            self.scalars[register + 1] = (value >> 32) as u32;
        }
    }

    /// A mask of lanes.
    #[inline(always)]
    #[must_use]
    pub fn lanes(&self, operand: Operand) -> u64 {
        if N == 64 { self.s64(operand) } else { u64::from(self.s32(operand)) }
    }

    /// Writes a mask of lanes.
    #[inline(always)]
    pub fn put_lanes(&mut self, to: Operand, value: u64) {
        if N == 64 { self.put_s64(to, value) } else { self.put_s32(to, value as u32) }
    }

    // Rows.

    /// 32 bits of each lane: the register itself, or the scalar in all lanes of `room`.
    #[inline(always)]
    #[must_use]
    pub fn row<'a>(&'a self, operand: Operand, room: &'a mut Row<N>) -> &'a Row<N> {
        match operand {
            Operand::Vector(register) => &self.vectors[register as usize],
            other => {
                *room = [self.s32(other); N];
                room
            }
        }
    }

    /// 32 bits of each lane.
    #[inline(always)]
    #[must_use]
    pub fn words(&self, operand: Operand) -> Row<N> {
        *self.row(operand, &mut [0; N])
    }

    /// 64 bits of each lane; a literal is that many bits of an integer.
    #[inline(always)]
    #[must_use]
    pub fn doubles(&self, operand: Operand) -> Row<N, u64> {
        match operand {
            Operand::Vector(register) => {
                let (low, high) = (&self.vectors[register as usize], &self.vectors[register as usize + 1]);
                std::array::from_fn(|lane| u64::from(low[lane]) | u64::from(high[lane]) << 32)
            }
            other => [self.s64(other); N],
        }
    }

    /// Source `k`, 16 bits of each lane, without its modifiers of sign.
    #[inline(always)]
    #[must_use]
    pub fn halves(&self, instruction: &Instruction, k: usize) -> Row<N, u16> {
        self.halves_of(instruction.source[k], instruction.high >> k & 1 != 0)
    }

    /// 16 bits of each lane: the low or the high half.
    #[inline(always)]
    #[must_use]
    pub fn halves_of(&self, operand: Operand, high: bool) -> Row<N, u16> {
        match operand {
            Operand::Vector(register) => {
                let row = &self.vectors[register as usize];
                if high {
                    std::array::from_fn(|lane| (row[lane] >> 16) as u16)
                } else {
                    std::array::from_fn(|lane| row[lane] as u16)
                }
            }
            Operand::Inline(number) => [number.half; N],
            other => [(self.s32(other) >> if high { 16 } else { 0 }) as u16; N],
        }
    }

    /// Source `k` as f32, with its modifiers.
    #[inline(always)]
    #[must_use]
    pub fn floats(&self, instruction: &Instruction, k: usize) -> Row<N, f32> {
        let words = self.words(instruction.source[k]);
        self.floats_of(&words, instruction, k)
    }

    /// Rows as f32, with the modifiers of source `k`.
    #[inline(always)]
    #[must_use]
    pub fn floats_of(&self, words: &Row<N>, instruction: &Instruction, k: usize) -> Row<N, f32> {
        let keep = if instruction.absolute >> k & 1 != 0 { 0x7fff_ffff } else { u32::MAX };
        let flip = if instruction.negate >> k & 1 != 0 { 0x8000_0000 } else { 0 };
        let mut row: Row<N, f32> = std::array::from_fn(|lane| f32::from_bits(words[lane] & keep ^ flip));
        if self.mode & 0x10 == 0 {
            flush(&mut row);
        }
        row
    }

    /// Source `k` as f64, with its modifiers. Of a literal the word is the upper half.
    #[inline(always)]
    #[must_use]
    pub fn float_doubles(&self, instruction: &Instruction, k: usize) -> Row<N, f64> {
        let doubles = match instruction.source[k] {
            Operand::Literal(word) => [u64::from(word) << 32; N],
            other => self.doubles(other),
        };
        let keep = if instruction.absolute >> k & 1 != 0 { u64::MAX >> 1 } else { u64::MAX };
        let flip = if instruction.negate >> k & 1 != 0 { 1 << 63 } else { 0 };
        let mut row: Row<N, f64> = std::array::from_fn(|lane| f64::from_bits(doubles[lane] & keep ^ flip));
        if self.mode & 0x40 == 0 {
            for value in &mut row {
                if value.is_subnormal() {
                    *value = 0f64.copysign(*value);
                }
            }
        }
        row
    }

    /// Source `k` of 16 bits as f32, with its modifiers.
    #[inline(always)]
    #[must_use]
    pub fn half_floats(&self, instruction: &Instruction, k: usize) -> Row<N, f32> {
        let halves = self.halves(instruction, k);
        let keep = if instruction.absolute >> k & 1 != 0 { 0x7fff } else { u16::MAX };
        let flip = if instruction.negate >> k & 1 != 0 { 0x8000 } else { 0 };
        self.from_halves(&std::array::from_fn(|lane| halves[lane] & keep ^ flip))
    }

    /// Halves as f32, of which subnormals are flushed if the mode says so.
    #[inline(always)]
    #[must_use]
    pub fn from_halves(&self, halves: &Row<N, u16>) -> Row<N, f32> {
        let flushed = self.mode & 0x40 == 0;
        std::array::from_fn(|lane| {
            let half = halves[lane];
            half_to_float(if flushed && half & 0x7c00 == 0 { half & 0x8000 } else { half })
        })
    }

    // Results.

    /// Writes 32 bits of the lanes that are on.
    #[inline(always)]
    pub fn put(&mut self, to: Operand, row: &Row<N>) {
        let Operand::Vector(register) = to else { return };
        if self.exec() == Self::ALL {
            self.vectors[register as usize] = *row;
            return;
        }
        let mask = *self.mask();
        let old = &mut self.vectors[register as usize];
        for lane in 0..N {
            old[lane] = old[lane] & !mask[lane] | row[lane] & mask[lane];
        }
    }

    /// Writes 64 bits of the lanes that are on.
    #[inline(always)]
    pub fn put_doubles(&mut self, to: Operand, row: &Row<N, u64>) {
        let Operand::Vector(register) = to else { return };
        self.put(to, &std::array::from_fn(|lane| row[lane] as u32));
        self.put(Operand::Vector(register + 1), &std::array::from_fn(|lane| (row[lane] >> 32) as u32));
    }

    /// Writes the instruction's result of 16 bits; the other half of the register stays.
    #[inline(always)]
    pub fn put_halves(&mut self, instruction: &Instruction, row: &Row<N, u16>) {
        self.put_half(instruction.to, instruction.high & 8 != 0, row);
    }

    /// Writes a half of a register; the other stays.
    #[inline(always)]
    pub fn put_half(&mut self, to: Operand, high: bool, row: &Row<N, u16>) {
        let Operand::Vector(register) = to else { return };
        let old = &self.vectors[register as usize];
        let words = if high {
            std::array::from_fn(|lane| old[lane] & 0xffff | u32::from(row[lane]) << 16)
        } else {
            std::array::from_fn(|lane| old[lane] & 0xffff_0000 | u32::from(row[lane]))
        };
        self.put(to, &words);
    }

    /// Writes the instruction's result of f32, scaled and clamped as it says.
    #[inline(always)]
    pub fn put_floats(&mut self, instruction: &Instruction, mut row: Row<N, f32>) {
        modify(instruction, &mut row);
        if self.mode & 0x20 == 0 {
            flush(&mut row);
        }
        self.put(instruction.to, &row.map(f32::to_bits));
    }

    /// Writes the instruction's result of f64, clamped as it says.
    #[inline(always)]
    pub fn put_float_doubles(&mut self, instruction: &Instruction, mut row: Row<N, f64>) {
        let factor = [1.0, 2.0, 4.0, 0.5][instruction.scale as usize & 3];
        for value in &mut row {
            *value *= if instruction.scale == 0 { 1.0 } else { factor };
            if instruction.clamp {
                *value = if *value > 0.0 { value.min(1.0) } else { 0.0 };
            }
            if self.mode & 0x80 == 0 && value.is_subnormal() {
                *value = 0f64.copysign(*value);
            }
        }
        self.put_doubles(instruction.to, &row.map(f64::to_bits));
    }

    /// Writes the instruction's result of f16, rounded from f32.
    #[inline(always)]
    pub fn put_half_floats(&mut self, instruction: &Instruction, mut row: Row<N, f32>) {
        modify(instruction, &mut row);
        let halves = self.to_halves(&row);
        self.put_halves(instruction, &halves);
    }

    /// f32 rounded to halves, of which subnormals are flushed if the mode says so.
    #[inline(always)]
    #[must_use]
    pub fn to_halves(&self, row: &Row<N, f32>) -> Row<N, u16> {
        let flushed = self.mode & 0x80 == 0;
        std::array::from_fn(|lane| {
            let half = float_to_half(row[lane]);
            if flushed && half & 0x7c00 == 0 { half & 0x8000 } else { half }
        })
    }
}

impl<const N: usize> Default for Wave<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Scales and clamps results as the instruction says.
#[inline(always)]
fn modify<const N: usize>(instruction: &Instruction, row: &mut Row<N, f32>) {
    if instruction.scale != 0 {
        let factor = [1.0, 2.0, 4.0, 0.5][instruction.scale as usize & 3];
        for value in row.iter_mut() {
            *value *= factor;
        }
    }
    if instruction.clamp {
        for value in row.iter_mut() {
            *value = if *value > 0.0 { value.min(1.0) } else { 0.0 };
        }
    }
}

/// Makes subnormals zeros of their sign.
#[inline(always)]
fn flush<const N: usize>(row: &mut Row<N, f32>) {
    for value in row.iter_mut() {
        let bits = value.to_bits();
        *value = f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits });
    }
}
