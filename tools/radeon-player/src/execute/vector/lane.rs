//! Types of operands: how they are read, with their modifiers, and written.

use crate::execute::float::{float_to_half, half_to_float};
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
fn bit(bits: u8, k: usize) -> bool {
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
fn shorts<'a, const N: usize>(wave: &'a Wave<N>, operand: Operand, high: bool, room: &'a mut Rows<N>) -> Read<'a, N> {
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
fn change_signs<const N: usize>(instruction: &Instruction, k: usize, sign: u32, row: &mut Row<N>) {
    let keep = if bit(instruction.absolute, k) { !sign } else { !0 };
    let turn = if bit(instruction.negate, k) { sign } else { 0 };
    for word in row {
        *word = *word & keep ^ turn;
    }
}

#[inline(always)]
fn has_signs(instruction: &Instruction, k: usize) -> bool {
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
fn flush_halves<const N: usize>(row: &mut Row<N>) {
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
const OTHER_IN: u32 = 0x40;
const OTHER_OUT: u32 = 0x80;

/// What results are multiplied by.
#[inline(always)]
fn factor(instruction: &Instruction) -> f32 {
    [1.0, 2.0, 4.0, 0.5][instruction.scale as usize & 3]
}

/// From 0 to 1; 0 for what is no number.
#[inline(always)]
fn limit(value: f32) -> f32 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

macro_rules! integer {
    ($type:ty, $read:ident, $word:ident => $get:expr, $value:ident => $put:expr) => {
        impl Value for $type {
            #[inline(always)]
            fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
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
fn write_half<const N: usize>(wave: &mut Wave<N>, to: Operand, high: bool, row: &Row<N>) {
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
            fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
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

/// An `f16` that is computed with as `f32`: sums, products, quotients and roots of halves are right when they are rounded
/// once more to a half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half(pub f32);

/// An `f16` that is computed with as `f64`, for sums of products, which `f32` does not hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide(pub f64);

#[inline(always)]
fn read_halves<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
    if !has_signs(i, k) && w.mode & OTHER_IN != 0 {
        return shorts(w, i.source[k], bit(i.high, k), room);
    }
    let mut more = [[0; N]; 2];
    room[0] = *shorts(w, i.source[k], bit(i.high, k), &mut more)[0];
    change_signs(i, k, 0x8000, &mut room[0]);
    if w.mode & OTHER_IN == 0 {
        flush_halves(&mut room[0]);
    }
    [&room[0], &room[0]]
}

#[inline(always)]
fn write_halves<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
    write_halves_to(wave, instruction, bit(instruction.high, 3), rows);
}

#[inline(always)]
fn write_halves_to<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, high: bool, rows: &mut Rows<N>) {
    if instruction.scale != 0 || instruction.clamp {
        for word in &mut rows[0] {
            let value = half_to_float(*word as u16) * factor(instruction);
            *word = u32::from(float_to_half(if instruction.clamp { limit(value) } else { value }));
        }
    }
    if wave.mode & OTHER_OUT == 0 {
        flush_halves(&mut rows[0]);
    }
    write_half(wave, instruction.to, high, &rows[0]);
}

macro_rules! half {
    ($type:ident, $word:ident => $get:expr, $value:ident => $put:expr) => {
        impl Value for $type {
            const LIMITS: bool = true;
            #[inline(always)]
            fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
                read_halves(w, i, k, room)
            }
            #[inline(always)]
            fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
                let $word = rows[0][lane] as u16;
                Self($get)
            }
            #[inline(always)]
            fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
                let $value = self.0;
                rows[0][lane] = u32::from($put);
            }
            #[inline(always)]
            fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
                write_halves(wave, instruction, rows);
            }
        }
    };
}
half!(Half, word => half_to_float(word), value => float_to_half(value));
half!(Wide, word => f64::from(half_to_float(word)), value => float_to_half(odd_single(value)));

/// A value of `f64` as `f32`, with an odd last place where it is not exact, so that a second rounding to a half is right.
#[inline(always)]
#[must_use]
pub fn odd_single(value: f64) -> f32 {
    let near = value as f32;
    let (exact, bits) = (f64::from(near), near.to_bits());
    let toward_zero = if exact.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    // Beyond this a half is infinite, and no number is not equal to itself.
    let inexact = exact != value && value.abs() < 65536.0;
    if inexact { f32::from_bits(toward_zero | 1) } else { near }
}

/// An `f32` that may have been an `f16`: sources of `v_fma_mix`. It is never written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed(pub f32);

impl Value for Mixed {
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        if !bit(i.high_of_high, k) {
            return f32::read(w, i, k, room);
        }
        let mut more = [[0; N]; 2];
        let halves = read_halves(w, i, k, &mut more);
        room[0] = halves[0].map(|word| half_to_float(word as u16).to_bits());
        [&room[0], &room[0]]
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self(f32::from_bits(rows[0][lane]))
    }
    fn put<const N: usize>(self, _: &mut Rows<N>, _: usize) {}
    fn write<const N: usize>(_: &mut Wave<N>, _: &Instruction, _: &mut Rows<N>) {}
}

/// An `f16` that goes to the half of its register that the instruction's name says. It is never read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InHalf<const HIGH: bool>(pub f32);

impl<const HIGH: bool> Value for InHalf<HIGH> {
    const LIMITS: bool = true;
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        f32::read(w, i, k, room)
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self(f32::of(rows, lane))
    }
    #[inline(always)]
    fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
        Half(self.0).put(rows, lane);
    }
    #[inline(always)]
    fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
        write_halves_to(wave, instruction, HIGH, rows);
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

/// Two halves of a word, those that the instruction chose; with a type of each half that can be negated or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<T>(pub [T; 2]);

/// What halves of words are computed with as.
pub trait Part: Copy {
    /// Whether these are floats, which have signs to change and subnormals.
    const FLOAT: bool;
    /// From the low bits.
    fn of_bits(bits: u32) -> Self;
    /// To the low bits.
    fn bits(self) -> u32;
}

macro_rules! part {
    ($type:ty, $float:literal, $bits:ident => $get:expr, $value:ident => $put:expr) => {
        impl Part for $type {
            const FLOAT: bool = $float;
            #[inline(always)]
            fn of_bits($bits: u32) -> Self {
                $get
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                let $value = self;
                $put
            }
        }
    };
}
part!(u16, false, bits => bits as u16, value => u32::from(value));
part!(i16, false, bits => bits as i16, value => u32::from(value as u16));
part!(f32, true, bits => half_to_float(bits as u16), value => u32::from(float_to_half(value)));
part!(f64, true, bits => f64::from(half_to_float(bits as u16)), value => u32::from(float_to_half(odd_single(value))));

/// A number of the encoding in both halves: floats are in the low half alone, whole numbers have 32 bits.
fn packed_inline(number: Inline, float: bool) -> u32 {
    let whole = (-16..=64).contains(&(number.word as i32));
    if float && !whole { u32::from(number.half) } else { number.word }
}

impl<T: Part> Value for Pair<T> {
    const LIMITS: bool = T::FLOAT;
    #[inline(always)]
    fn read<'a, const N: usize>(w: &'a Wave<N>, i: &Instruction, k: usize, room: &'a mut Rows<N>) -> Read<'a, N> {
        let flushed = T::FLOAT && w.mode & OTHER_IN == 0;
        let (low, high) = (bit(i.high, k), bit(i.high_of_high, k));
        // Of packed instructions the bits of absolute values negate the high half.
        let turn = u32::from(bit(i.negate, k)) << 15 | u32::from(bit(i.absolute, k)) << 31;
        if let Operand::Vector(register) = i.source[k]
            && !low
            && high
            && turn == 0
            && !flushed
        {
            return [&w.vectors[register as usize]; 2];
        }
        room[0] = match i.source[k] {
            Operand::Inline(number) => [packed_inline(number, T::FLOAT); N],
            other => w.words(other),
        };
        let (low, high) = (if low { 16 } else { 0 }, if high { 16 } else { 0 });
        for word in &mut room[0] {
            *word = ((*word >> low & 0xffff) | (*word >> high) << 16) ^ if T::FLOAT { turn } else { 0 };
        }
        if flushed {
            flush_halves(&mut room[0]);
        }
        [&room[0], &room[0]]
    }
    #[inline(always)]
    fn of<const N: usize>(rows: Read<N>, lane: usize) -> Self {
        Self([T::of_bits(rows[0][lane] & 0xffff), T::of_bits(rows[0][lane] >> 16)])
    }
    #[inline(always)]
    fn put<const N: usize>(self, rows: &mut Rows<N>, lane: usize) {
        rows[0][lane] = self.0[0].bits() | self.0[1].bits() << 16;
    }
    #[inline(always)]
    fn write<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, rows: &mut Rows<N>) {
        if T::FLOAT && instruction.clamp {
            for word in &mut rows[0] {
                let one = |bits: u32| u32::from(float_to_half(limit(half_to_float(bits as u16))));
                *word = one(*word) | one(*word >> 16) << 16;
            }
        }
        if T::FLOAT && wave.mode & OTHER_OUT == 0 {
            flush_halves(&mut rows[0]);
        }
        wave.put(instruction.to, &rows[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::half::f16;

    /// The half next to a value, of two the even one. (The crate's own conversion drops the last bits of the value.)
    fn nearest(value: f64) -> u16 {
        let first = f16::from_f32(value as f32).to_bits();
        if value.abs() >= 65520.0 {
            return first;
        }
        let distance = |bits: u16| (f16::from_bits(bits).to_f64() - value).abs();
        [first.wrapping_sub(1), first, first + 1]
            .into_iter()
            .min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))))
            .unwrap_or(first)
    }

    #[test]
    fn doubles_round_once_to_halves() {
        let mut bits = 1u32;
        for _ in 0..300_000 {
            bits = bits.wrapping_mul(0x9e37_79b1).wrapping_add(12345);
            // Exponents about those of halves.
            let value = f32::from_bits(bits & 0x87ff_ffff | 0x3000_0000 + (bits & 0x1000_0000));
            let double = f64::from(value) * (1.0 + f64::from(bits >> 8) * f64::EPSILON);
            assert_eq!(float_to_half(odd_single(double)), nearest(double), "{double:e}");
        }
        // A half of a last place, and a little more or less.
        for more in [-1e-12, 0.0, 1e-12] {
            let double = 1.0 + 2f64.powi(-11) + more;
            assert_eq!(float_to_half(odd_single(double)), nearest(double), "{more:e}");
        }
    }
}
