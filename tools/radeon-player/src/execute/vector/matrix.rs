//! Matrix units: `v_wmma` of 16 x 16 x 16.
//!
//! Row `r` of the first matrix and column `r` of the second lie in lane `r`, and again in every
//! further 16 lanes. Row `m` of the sums lies in the lanes of group `m % (lanes / 16)` of register
//! `m / (lanes / 16)`.
//!
//! On RDNA4 nothing lies twice: see [`run_spread`].
//!
//! AMD does not say in which order products are added and how often sums are rounded; here they are
//! added exactly as far as `f64` goes, and rounded once. Whole numbers are exact.

use super::halves::odd_single;
use super::small;
use crate::execute::float::{float_to_half, half_to_float};
use crate::execute::wave::{Row, Wave};
use crate::execute::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::Generation;
use crate::isa::instruction::{Instruction, Operand};

/// What an encoding says beside its registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// Of integers: the first, the second operand is signed. Otherwise: the even elements of each
    /// operand are negated.
    pub negate_low: [bool; 3],
    /// The odd elements of each operand are negated; of the third: without its sign.
    pub negate_high: [bool; 3],
    /// Sums of 16 bits are in the high halves of their registers.
    pub high: bool,
    /// Sums of integers end at the limits.
    pub limit: bool,
}

/// Registers: the sums as they were, rows of the two operands, and the sums before.
struct Operands<'a, const N: usize> {
    out: &'a mut [Row<N>],
    a: &'a [Row<N>],
    b: &'a [Row<N>],
    c: &'a [Row<N>],
}

#[derive(Clone, Copy)]
enum Element {
    Half,
    Brain,
    Byte,
    Nibble,
    /// Floats of eight bits.
    Fp8,
    Bf8,
}

/// An operand as 16 rows of `K` numbers.
fn read<const N: usize, const K: usize>(
    kind: Element,
    rows: &[Row<N>],
    signed: bool,
    negate: [bool; 2],
) -> [[f64; K]; 16] {
    std::array::from_fn(|row| {
        std::array::from_fn(|k| {
            let negative = |value: f32| f64::from(if negate[k & 1] { -value } else { value });
            match kind {
                Element::Half => negative(half_to_float((rows[k / 2][row] >> (16 * (k & 1))) as u16)),
                Element::Brain => negative(f32::from_bits(rows[k / 2][row] >> (16 * (k & 1)) << 16)),
                Element::Byte => {
                    let byte = (rows[k / 4][row] >> (8 * (k & 3))) as u8;
                    if signed { f64::from(byte as i8) } else { f64::from(byte) }
                }
                // Of these only the third operand has modifiers.
                Element::Fp8 => f64::from(small::value::<{ small::FP8 }>((rows[k / 4][row] >> (8 * (k & 3))) as u8)),
                Element::Bf8 => f64::from(small::value::<{ small::BF8 }>((rows[k / 4][row] >> (8 * (k & 3))) as u8)),
                Element::Nibble => {
                    let moved = rows[k / 8][row] << (28 - 4 * (k & 7));
                    if signed { f64::from(moved as i32 >> 28) } else { f64::from(moved >> 28) }
                }
            }
        })
    })
}

/// The products of one row of the first matrix with all columns, added to sums.
fn add_products<const K: usize>(sums: &mut [f64; 16], row: &[f64; K], columns: &[[f64; K]; 16]) {
    // By rows of the second matrix, so that columns go together.
    for (k, &left) in row.iter().enumerate() {
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum += left * column[k];
        }
    }
}

fn multiply<const N: usize, const K: usize>(
    kinds: [Element; 2],
    operands: [&[Row<N>]; 2],
    flags: Flags,
    mut before: impl FnMut(usize, usize) -> f64,
    mut after: impl FnMut(usize, usize, f64),
) {
    let negate = |k: usize| [flags.negate_low[k], flags.negate_high[k]];
    let a: [[f64; K]; 16] = read(kinds[0], operands[0], flags.negate_low[0], negate(0));
    let b: [[f64; K]; 16] = read(kinds[1], operands[1], flags.negate_low[1], negate(1));
    let groups = N / 16;
    for (m, row) in a.iter().enumerate() {
        let (register, first) = (m / groups, m % groups * 16);
        let mut sums = std::array::from_fn(|n| before(register, first + n));
        add_products(&mut sums, row, &b);
        for (n, sum) in sums.into_iter().enumerate() {
            after(register, first + n, sum);
        }
    }
}

/// The third operand with its modifiers.
fn changed(value: f32, flags: Flags) -> f64 {
    let value = if flags.negate_high[2] { value.abs() } else { value };
    f64::from(if flags.negate_low[2] { -value } else { value })
}

fn to_single<const N: usize>(kinds: [Element; 2], rows: Operands<N>, flags: Flags) {
    let Operands { out, a, b, c } = rows;
    let before = |register: usize, lane: usize| changed(f32::from_bits(c[register][lane]), flags);
    let after = |register: usize, lane: usize, sum: f64| out[register][lane] = (sum as f32).to_bits();
    multiply::<N, 16>(kinds, [a, b], flags, before, after);
}

fn single_of_halves<const N: usize>(rows: Operands<N>, flags: Flags) {
    to_single([Element::Half; 2], rows, flags);
}

fn single_of_brains<const N: usize>(rows: Operands<N>, flags: Flags) {
    to_single([Element::Brain; 2], rows, flags);
}

/// Sums of 16 bits, in one half of their registers; the other stays.
fn place(word: &mut u32, bits: u32, high: bool) {
    *word = if high { *word & 0xffff | bits << 16 } else { *word & 0xffff_0000 | bits };
}

fn half_of_halves<const N: usize>(rows: Operands<N>, flags: Flags) {
    let shift = if flags.high { 16 } else { 0 };
    let Operands { out, a, b, c } = rows;
    let before = |register: usize, lane: usize| changed(half_to_float((c[register][lane] >> shift) as u16), flags);
    let after = |register: usize, lane: usize, sum: f64| {
        place(&mut out[register][lane], u32::from(float_to_half(odd_single(sum))), flags.high);
    };
    multiply::<N, 16>([Element::Half; 2], [a, b], flags, before, after);
}

fn brain_of_brains<const N: usize>(rows: Operands<N>, flags: Flags) {
    let shift = if flags.high { 16 } else { 0 };
    let Operands { out, a, b, c } = rows;
    let before = |register: usize, lane: usize| changed(f32::from_bits(c[register][lane] >> shift << 16), flags);
    let after = |register: usize, lane: usize, sum: f64| {
        place(&mut out[register][lane], u32::from(::half::bf16::from_f64(sum).to_bits()), flags.high);
    };
    multiply::<N, 16>([Element::Brain; 2], [a, b], flags, before, after);
}

fn integers<const N: usize, const K: usize>(kind: Element, rows: Operands<N>, flags: Flags) {
    let Operands { out, a, b, c } = rows;
    let before = |register: usize, lane: usize| f64::from(c[register][lane] as i32);
    let after = |register: usize, lane: usize, sum: f64| {
        out[register][lane] = if flags.limit { sum as i32 as u32 } else { sum as i64 as u32 };
    };
    let signs = Flags { negate_low: [flags.negate_low[0], flags.negate_low[1], false], ..Flags::default() };
    multiply::<N, K>([kind; 2], [a, b], signs, before, after);
}

fn bytes<const N: usize>(rows: Operands<N>, flags: Flags) {
    integers::<N, 16>(Element::Byte, rows, flags);
}

fn nibbles<const N: usize>(rows: Operands<N>, flags: Flags) {
    integers::<N, 16>(Element::Nibble, rows, flags);
}

fn more_nibbles<const N: usize>(rows: Operands<N>, flags: Flags) {
    integers::<N, 32>(Element::Nibble, rows, flags);
}

/// The first registers of the result and of the two operands, and of the sums before if they are in
/// registers, where all that they need are registers.
fn first_registers(it: &Instruction, counts: [usize; 3]) -> Result<[usize; 3], Box<Trap>> {
    let [sums, a, b] = counts;
    let place = |operand: Operand, count: usize| match operand {
        Operand::Vector(first) if usize::from(first) + count <= 256 => Ok(usize::from(first)),
        _ => Err(Trap::new(FaultKind::Other("a matrix beyond the last register".to_owned()))),
    };
    if let Operand::Vector(_) = it.source[2] {
        place(it.source[2], sums)?;
    }
    Ok([place(it.to, sums)?, place(it.source[0], a)?, place(it.source[1], b)?])
}

/// Carries out a matrix instruction whose two operands have so many registers. All lanes take part.
#[inline(always)]
fn run<const N: usize>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    inputs: usize,
    product: impl Fn(Operands<N>, Flags),
) -> Outcome {
    let outputs = 256 / N;
    let [to, a, b] = first_registers(instruction, [outputs, inputs, inputs])?;
    let bits = |bits: u8| [0, 1, 2].map(|k| bits >> k & 1 != 0);
    let flags = Flags {
        negate_low: bits(instruction.negate),
        negate_high: bits(instruction.absolute),
        high: instruction.high >> 2 & 1 != 0,
        limit: instruction.clamp,
    };
    let mut c = [[0; N]; 8];
    match instruction.source[2] {
        Operand::Vector(c_first) => c[..outputs].copy_from_slice(&wave.vectors[usize::from(c_first)..][..outputs]),
        Operand::Inline(number) if instruction.name.contains("_f16_16x") => c = [[u32::from(number.half); N]; 8],
        other => c = [[wave.s32(other); N]; 8],
    }
    let mut out = [[0; N]; 8];
    out[..outputs].copy_from_slice(&wave.vectors[to..][..outputs]);
    let (a, b) = (&wave.vectors[a..][..inputs], &wave.vectors[b..][..inputs]);
    product(Operands { out: &mut out[..outputs], a, b, c: &c[..outputs] }, flags);
    wave.vectors[to..][..outputs].copy_from_slice(&out[..outputs]);
    Ok(())
}

/// The same on RDNA4, where each number lies in one lane alone: operands and sums are moved to
/// where RDNA3 has them.
fn run_spread<const N: usize>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    inputs: usize,
    product: impl Fn(Operands<N>, Flags),
) -> Outcome {
    let outputs = 256 / N;
    let per_lane = inputs * 16 / N;
    if per_lane == 0 {
        return Err(Trap::new(FaultKind::Missing));
    }
    let [to, a, b] = first_registers(instruction, [outputs, per_lane, per_lane])?;
    let bits = |bits: u8| [0, 1, 2].map(|k| bits >> k & 1 != 0);
    let (negate_low, negate_high) = (bits(instruction.negate), bits(instruction.absolute));
    let flags = Flags { negate_low, negate_high, high: false, limit: instruction.clamp };
    // Which 16 lanes have a part of a row or column: in waves of 64 the second half is that of the
    // upper lanes.
    let lanes_of = |part: usize| 16 * if N == 64 { [0, 2, 1, 3][part] } else { part };
    let gather = |first: usize| -> [Row<N>; 8] {
        let word = |k: usize, lane: usize| match k < inputs {
            true => wave.vectors[first + k % per_lane][lane % 16 + lanes_of(k / per_lane)],
            false => 0,
        };
        std::array::from_fn(|k| std::array::from_fn(|lane| word(k, lane)))
    };
    let (a, b) = (gather(a), gather(b));
    // Rows of the sums likewise; those of 16 bits lie two in a register.
    let halves = ["v_wmma_f16", "v_wmma_bf16"].iter().any(|start| instruction.name.starts_with(start));
    let groups = N / 16;
    let place = |register: usize, lane: usize| {
        let row = register * groups + lane / 16;
        let (element, there) = (row % outputs, lanes_of(row / outputs) + lane % 16);
        if halves { (element / 2, there, 16 * (element % 2)) } else { (element, there, 0) }
    };
    let mut c = [[0; N]; 8];
    for (register, row) in c.iter_mut().enumerate().take(outputs) {
        for (lane, word) in row.iter_mut().enumerate() {
            let (from, there, shift) = place(register, lane);
            *word = match instruction.source[2] {
                Operand::Vector(first) => wave.vectors[usize::from(first) + from][there] >> shift,
                Operand::Inline(number) if halves => u32::from(number.half),
                other => wave.s32(other),
            };
        }
    }
    let mut out = [[0; N]; 8];
    product(Operands { out: &mut out[..outputs], a: &a[..inputs], b: &b[..inputs], c: &c[..outputs] }, flags);
    for (register, row) in out.iter().enumerate().take(outputs) {
        for (lane, word) in row.iter().enumerate() {
            let (from, there, shift) = place(register, lane);
            let old = &mut wave.vectors[to + from][there];
            *old = if halves { *old & !(0xffff << shift) | (word & 0xffff) << shift } else { *word };
        }
    }
    Ok(())
}

macro_rules! matrices {
    ($name:ident; $($text:literal: $inputs:literal, $product:expr;)*) => {
        match $name {
            $($text => {
                fn one<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
                    if group.dispatch.generation == Generation::Rdna4 {
                        run_spread(wave, instruction, $inputs, $product)
                    } else {
                        run(wave, instruction, $inputs, $product)
                    }
                }
                Some(one::<N>)
            })*
            _ => None,
        }
    };
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    matrices! { name;
        "v_wmma_f32_16x16x16_f16": 8, single_of_halves;
        "v_wmma_f32_16x16x16_bf16": 8, single_of_brains;
        "v_wmma_f16_16x16x16_f16": 8, half_of_halves;
        "v_wmma_bf16_16x16x16_bf16": 8, brain_of_brains;
        "v_wmma_i32_16x16x16_iu8": 4, bytes;
        "v_wmma_i32_16x16x16_iu4": 2, nibbles;
        "v_wmma_i32_16x16x32_iu4": 4, more_nibbles;
        "v_wmma_f32_16x16x16_fp8_fp8": 4, |rows, flags| to_single([Element::Fp8; 2], rows, flags);
        "v_wmma_f32_16x16x16_fp8_bf8": 4, |rows, flags| to_single([Element::Fp8, Element::Bf8], rows, flags);
        "v_wmma_f32_16x16x16_bf8_fp8": 4, |rows, flags| to_single([Element::Bf8, Element::Fp8], rows, flags);
        "v_wmma_f32_16x16x16_bf8_bf8": 4, |rows, flags| to_single([Element::Bf8; 2], rows, flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: &mut u32) -> u32 {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *seed >> 8
    }

    fn check<const N: usize>() {
        let mut seed = 1;
        let a: [[u8; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| noise(&mut seed) as u8));
        let b: [[u8; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| noise(&mut seed) as u8));
        let word =
            |row: &[u8; 16], k: usize| u32::from_le_bytes([row[4 * k], row[4 * k + 1], row[4 * k + 2], row[4 * k + 3]]);
        let rows = |of: &[[u8; 16]; 16]| -> [Row<N>; 4] {
            std::array::from_fn(|k| std::array::from_fn(|lane| word(&of[lane % 16], k)))
        };
        let (mut out, c) = ([[0; N]; 8], [[7; N]; 8]);
        let flags = Flags { negate_low: [true, false, false], ..Flags::default() };
        bytes(Operands { out: &mut out, a: &rows(&a), b: &rows(&b), c: &c }, flags);
        for (m, row) in a.iter().enumerate() {
            for (n, column) in b.iter().enumerate() {
                let products = row.iter().zip(column).map(|(&x, &y)| i32::from(x as i8) * i32::from(y));
                let (groups, sum) = (N / 16, products.sum::<i32>() + 7);
                assert_eq!(out[m / groups][m % groups * 16 + n] as i32, sum, "{N} lanes, {m} {n}");
            }
        }
    }

    /// Rows and columns whose `K` parts are a byte or a nibble each.
    fn small_operands<const N: usize>(seed: &mut u32) -> ([Row<N>; 4], [Row<N>; 4]) {
        let mut rows = || -> [Row<N>; 4] {
            let words: [[u32; 16]; 4] =
                std::array::from_fn(|_| std::array::from_fn(|_| noise(seed) ^ noise(seed) << 12));
            words.map(|row| std::array::from_fn(|lane| row[lane % 16]))
        };
        (rows(), rows())
    }

    #[test]
    fn nibbles_and_small_floats_are_multiplied() {
        let mut seed = 3;
        let (a, b) = small_operands::<32>(&mut seed);
        let (mut out, c) = ([[0; 32]; 8], [[9; 32]; 8]);
        let flags = Flags { negate_low: [false, true, false], ..Flags::default() };
        more_nibbles(Operands { out: &mut out, a: &a, b: &b, c: &c }, flags);
        let nibble = |of: &[Row<32>; 4], row: usize, k: usize| of[k / 8][row] >> (4 * (k % 8)) & 15;
        for (m, n) in (0..16).flat_map(|m| (0..16).map(move |n| (m, n))) {
            let sign = |value: u32| if value > 7 { value as i64 - 16 } else { i64::from(value) };
            let sum: i64 = (0..32).map(|k| i64::from(nibble(&a, m, k)) * sign(nibble(&b, n, k))).sum();
            assert_eq!(i64::from(out[m / 2][m % 2 * 16 + n] as i32), sum + 9, "{m} {n}");
        }
        // No byte is infinite or no number: bit 6 is off.
        let [a, b] = [a, b].map(|rows| rows.map(|row| row.map(|word| word & 0xbfbf_bfbf)));
        let (mut out, c) = ([[0; 32]; 8], [[0.5f32.to_bits(); 32]; 8]);
        to_single([Element::Fp8, Element::Bf8], Operands { out: &mut out, a: &a, b: &b, c: &c }, Flags::default());
        let byte = |of: &[Row<32>; 4], row: usize, k: usize| (of[k / 4][row] >> (8 * (k % 4))) as u8;
        for (m, n) in (0..16).flat_map(|m| (0..16).map(move |n| (m, n))) {
            // In units of 2^-25, the product of the least numbers of both types.
            let units = |byte: u8, fraction: u32| {
                let (exponent, low) =
                    (i64::from(byte >> fraction) & (127 >> fraction), i64::from(byte) & ((1 << fraction) - 1));
                let size = if exponent == 0 { low } else { (low | 1 << fraction) << (exponent - 1) };
                if byte & 128 != 0 { -size } else { size }
            };
            let sum: i64 = (0..16).map(|k| units(byte(&a, m, k), 3) * units(byte(&b, n, k), 2)).sum();
            let expected = ((sum + (1 << 24)) as f64 * 2f64.powi(-25)) as f32;
            assert_eq!(f32::from_bits(out[m / 2][m % 2 * 16 + n]), expected, "{m} {n}");
        }
    }

    #[test]
    fn bytes_are_multiplied() {
        check::<32>();
        check::<64>();
    }
}
