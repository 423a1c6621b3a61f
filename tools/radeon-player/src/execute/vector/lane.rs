//! Types of operands: how they are read, with their modifiers, and written.

use crate::execute::wave::{Row, Wave};
use crate::isa::instruction::{Inline, Instruction, Operand};

/// A register and the one after it. Types of 32 bits read and write the first alone.
pub type Rows<const N: usize> = [Row<N>; 2];

/// The same, wherever they are.
pub type Read<'a, const N: usize> = [&'a Row<N>; 2];

/// A type of operands.
pub trait Value: Copy {
    /// Whether [`Self::write`] keeps results from 0 to 1 where the instruction asks for it.
    const LIMITS: bool = false;
    /// Source `k`: its registers, or a copy with its modifiers in `room`.
    fn read<'a, const N: usize>(
        wave: &'a Wave<N>,
        instruction: &Instruction,
        k: usize,
        room: &'a mut Rows<N>,
    ) -> Read<'a, N>;
    /// A lane of what was read.
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self;
    /// Puts a lane of the result.
    fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize);
    /// Writes the result.
    fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>);
}

/// A bit of a source's modifiers.
#[inline(always)]
pub(super) fn bit(bits: u8, k: usize) -> bool {
    bits >> k & 1 != 0
}

#[inline(always)]
fn words<'a, const N: usize>(wave: &'a Wave<N>, operand: Operand, room: &'a mut Rows<N>) -> Read<'a, N> {
    let row = wave.row(operand, &mut room[0]);
    [row, row]
}

#[inline(always)]
fn longs<'a, const N: usize>(wave: &'a Wave<N>, operand: Operand, room: &'a mut Rows<N>) -> Read<'a, N> {
    if let Operand::Vector(register) = operand {
        return [&wave.vectors[register as usize], &wave.vectors[register as usize + 1]];
    }
    let value = wave.s64(operand);
    *room = [[value as u32; N], [(value >> 32) as u32; N]];
    [&room[0], &room[1]]
}

/// Halves in the low bits of words, of which the upper bits say nothing.
#[inline(always)]
pub(super) fn shorts<'a, const N: usize>(
    wave: &'a Wave<N>,
    operand: Operand,
    high: bool,
    room: &'a mut Rows<N>,
) -> Read<'a, N> {
    match operand {
        Operand::Vector(register) if !high => return [&wave.vectors[register as usize]; 2],
        Operand::Vector(register) => room[0] = wave.vectors[register as usize].map(|word| word >> 16),
        Operand::Inline(number) => room[0] = [u32::from(number.half); N],
        other => room[0] = [wave.s32(other) >> if high { 16 } else { 0 }; N],
    }
    [&room[0], &room[0]]
}

/// Signs of source `k` changed in a copy.
#[inline(always)]
pub(super) fn change_signs<const N: usize>(instruction: &Instruction, k: usize, sign: u32, row: &mut Row<N>) {
    let keep = if bit(instruction.absolute, k) { !sign } else { !0 };
    let turn = if bit(instruction.negate, k) { sign } else { 0 };
    for word in row {
        *word = *word & keep ^ turn;
    }
}

#[inline(always)]
pub(super) fn has_signs(instruction: &Instruction, k: usize) -> bool {
    bit(instruction.absolute | instruction.negate, k)
}

/// Makes zeros of subnormals of f32.
#[inline(always)]
fn flush_singles<const N: usize>(row: &mut Row<N>) {
    for word in row {
        *word = if *word & 0x7f80_0000 == 0 { *word & 0x8000_0000 } else { *word };
    }
}

/// Makes zeros of subnormals of f16, in both halves.
#[inline(always)]
pub(super) fn flush_halves<const N: usize>(row: &mut Row<N>) {
    for word in row {
        let low = if *word & 0x7c00 == 0 { 0x8000 } else { 0xffff };
        let high = if *word & 0x7c00_0000 == 0 { 0x8000_0000 } else { 0xffff_0000 };
        *word &= low | high;
    }
}

/// Makes zeros of subnormals of f64.
#[inline(always)]
fn flush_doubles<const N: usize>([low, high]: &mut Rows<N>) {
    for lane in 0..N {
        if high[lane] & 0x7ff0_0000 == 0 {
            (low[lane], high[lane]) = (0, high[lane] & 0x8000_0000);
        }
    }
}

// Of the wave's mode: which subnormals are kept.
const SINGLE_IN: u32 = 0x10;
const SINGLE_OUT: u32 = 0x20;
pub(super) const OTHER_IN: u32 = 0x40;
pub(super) const OTHER_OUT: u32 = 0x80;

/// What results are multiplied by.
#[inline(always)]
pub(super) fn factor(instruction: &Instruction) -> f32 {
    [1.0, 2.0, 4.0, 0.5][instruction.scale as usize & 3]
}

/// From 0 to 1; 0 for what is no number.
#[inline(always)]
pub(super) fn limit(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

macro_rules! integer {
    ($type:ty, $read:ident, $word:ident => $get:expr, $value:ident => $put:expr) => {
        impl Value for $type {
            #[inline(always)]
            fn read<'a, const N: usize>(
                w: &'a Wave<N>,
                i: &Instruction,
                k: usize,
                room: &'a mut Rows<N>,
            ) -> Read<'a, N> {
                $read!(w, i, k, room)
            }
            #[inline(always)]
            fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
                let $word = rows[0][lane];
                $get
            }
            #[inline(always)]
            fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
                let $value = self;
                rows[0][lane] = $put;
            }
            #[inline(always)]
            fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
                write_integer!($read, wave, instruction, rows);
            }
        }
    };
}
macro_rules! as_words {
    ($w:ident, $i:ident, $k:ident, $room:ident) => {
        words($w, $i.source[$k], $room)
    };
}
macro_rules! as_shorts {
    ($w:ident, $i:ident, $k:ident, $room:ident) => {
        shorts($w, $i.source[$k], bit($i.high, $k), $room)
    };
}
macro_rules! write_integer {
    (as_words, $wave:ident, $instruction:ident, $rows:ident) => {
        $wave.put($instruction.to, &$rows[0])
    };
    (as_shorts, $wave:ident, $instruction:ident, $rows:ident) => {
        write_half($wave, $instruction.to, bit($instruction.high, 3), &$rows[0])
    };
}
integer!(u32, as_words, word => word, value => value);
integer!(i32, as_words, word => word as i32, value => value as u32);
integer!(u16, as_shorts, word => word as u16, value => u32::from(value));
integer!(i16, as_shorts, word => word as i16, value => u32::from(value as u16));

/// Writes halves in the low bits of words; the other half of the register stays.
#[inline(always)]
pub(super) fn write_half<const N: usize>(wave: &mut Wave<N>, to: Operand, high: bool, row: &Row<N>) {
    let Operand::Vector(register) = to else { return };
    let old = &wave.vectors[register as usize];
    let words: Row<N> = if high {
        std::array::from_fn(|lane| old[lane] & 0xffff | row[lane] << 16)
    } else {
        std::array::from_fn(|lane| old[lane] & 0xffff_0000 | row[lane] & 0xffff)
    };
    wave.put(to, &words);
}

macro_rules! long {
    ($type:ty, $operand:ident => $read:expr) => {
        impl Value for $type {
            #[inline(always)]
            fn read<'a, const N: usize>(
                w: &'a Wave<N>,
                i: &Instruction,
                k: usize,
                room: &'a mut Rows<N>,
            ) -> Read<'a, N> {
                let $operand = i.source[k];
                longs(w, $read, room)
            }
            #[inline(always)]
            fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
                (u64::from(rows[1][lane]) << 32 | u64::from(rows[0][lane])) as Self
            }
            #[inline(always)]
            fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
                rows[0][lane] = self as u32;
                rows[1][lane] = (self >> 32) as u32;
            }
            #[inline(always)]
            fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
                write_long(wave, instruction.to, rows);
            }
        }
    };
}
long!(u64, operand => operand);
long!(i64, operand => signed_literal(operand));

/// A literal as a number with a sign, where 64 bits have one.
#[inline(always)]
fn signed_literal(operand: Operand) -> Operand {
    match operand {
        Operand::Literal(word) => {
            Operand::Inline(Inline { half: word as u16, word, double: i64::from(word as i32) as u64 })
        }
        other => other,
    }
}

/// Writes a register and the one after it.
#[inline(always)]
pub fn write_long<const N: usize>(wave: &mut Wave<N>, to: Operand, rows: &Rows<N>) {
    let Operand::Vector(register) = to else { return };
    wave.put(to, &rows[0]);
    wave.put(Operand::Vector(register + 1), &rows[1]);
}

impl Value for f32 {
    const LIMITS: bool = true;
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        if !has_signs(i, k) && w.mode & SINGLE_IN != 0 {
            return words(w, i.source[k], room);
        }
        room[0] = w.words(i.source[k]);
        change_signs(i, k, 0x8000_0000, &mut room[0]);
        if w.mode & SINGLE_IN == 0 {
            flush_singles(&mut room[0]);
        }
        [&room[0], &room[0]]
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self::from_bits(rows[0][lane])
    }
    #[inline(always)]
    fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
        rows[0][lane] = self.to_bits();
    }
    #[inline(always)]
    fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
        if instruction.scale != 0 {
            for word in &mut rows[0] {
                *word = (Self::from_bits(*word) * factor(instruction)).to_bits();
            }
        }
        if instruction.clamp {
            for word in &mut rows[0] {
                *word = limit(Self::from_bits(*word)).to_bits();
            }
        }
        if wave.mode & SINGLE_OUT == 0 {
            flush_singles(&mut rows[0]);
        }
        wave.put(instruction.to, &rows[0]);
    }
}

impl Value for f64 {
    const LIMITS: bool = true;
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        if let Operand::Vector(_) = i.source[k]
            && !has_signs(i, k)
            && w.mode & OTHER_IN != 0
        {
            return longs(w, i.source[k], room);
        }
        *room = match i.source[k] {
            // A literal is the upper word.
            Operand::Literal(word) => [[0; N], [word; N]],
            Operand::Vector(register) => [w.vectors[register as usize], w.vectors[register as usize + 1]],
            other => {
                let value = w.s64(other);
                [[value as u32; N], [(value >> 32) as u32; N]]
            }
        };
        change_signs(i, k, 0x8000_0000, &mut room[1]);
        if w.mode & OTHER_IN == 0 {
            flush_doubles(room);
        }
        [&room[0], &room[1]]
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self::from_bits(u64::from(rows[1][lane]) << 32 | u64::from(rows[0][lane]))
    }
    #[inline(always)]
    fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
        self.to_bits().put(rows, lane);
    }
    #[inline(always)]
    fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
        if instruction.scale != 0 || instruction.clamp {
            for lane in 0..N {
                let value = Self::of([&rows[0], &rows[1]], lane) * Self::from(factor(instruction));
                let limited = if value > 0.0 { value.min(1.0) } else { 0.0 };
                (if instruction.clamp { limited } else { value }).put(rows, lane);
            }
        }
        if wave.mode & OTHER_OUT == 0 {
            flush_doubles(rows);
        }
        write_long(wave, instruction.to, rows);
    }
}

/// The old value of the result, which instructions like `v_fmac` add to. It is never written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Own<T>(pub T);

impl<T: Value> Value for Own<T> {
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, _: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        let Operand::Vector(register) = i.to else { return [&w.vectors[256]; 2] };
        if bit(i.high, 3) {
            room[0] = w.vectors[register as usize].map(|word| word >> 16);
            return [&room[0], &room[0]];
        }
        [&w.vectors[register as usize], &w.vectors[(register as usize + 1).min(256)]]
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self(T::of(rows, lane))
    }
    fn put<const N: usize>(self, _: &mut Rows<N>, _: usize) {}
    fn write<const N: usize>(_: &mut Wave<N>, _: &Instruction, _: &mut Rows<N>) {}
}
