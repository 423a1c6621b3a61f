//! Operands of 16 bits that are floats, alone, in pairs, or as `f32`.

use super::lane::{
    OTHER_IN, OTHER_OUT, Read, Rows, Value, bit, change_signs, factor, flush_halves, has_signs, limit, shorts,
    write_half,
};
use crate::execute::float::{float_to_half, half_to_float};
use crate::execute::wave::Wave;
use crate::isa::instruction::{Inline, Instruction, Operand};

/// An `f16` that is computed with as `f32`: sums, products, quotients and roots of halves are right
/// when they are rounded once more to a half.
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
            fn read<'a, const N: usize>(
                w: &'a Wave<N>,
                i: &Instruction,
                k: usize,
                room: &'a mut Rows<N>,
            ) -> Read<'a, N> {
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

/// A value of `f64` as `f32`, with an odd last place where it is not exact, so that a second
/// rounding to a half is right.
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

/// An `f16` that goes to the half of its register that the instruction's name says. It is never
/// read.
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

/// Two halves of a word, those that the instruction chose; with a type of each half that can be
/// negated or not.
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

/// A number of the encoding in both halves: floats are in the low half alone, whole numbers have 32
/// bits.
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

    /// The half next to a value, of two the even one. (The crate's own conversion drops the last
    /// bits of the value.)
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
            let value = f32::from_bits(bits & 0x87ff_ffff | (0x3000_0000 + (bits & 0x1000_0000)));
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
