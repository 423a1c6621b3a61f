//! Numbers of operands.

use super::Generation;
use super::instruction::{Inline, Operand};
use crate::execute::wave::{M0, NULL};

/// A word follows.
pub const LITERAL: u32 = 255;
/// A word follows that says from which lanes of its row of 16 the first source comes.
pub const DPP16: u32 = 250;
/// The same of eights; the second number lets lanes take part that are off.
pub const DPP8: [u32; 2] = [233, 234];
/// A word follows that says which parts of registers are taken and written; of RDNA1 and RDNA2.
pub const SDWA: u32 = 249;
/// The first vector register.
pub const VECTOR: u32 = 256;

/// A scalar register of a field of 7 bits.
#[must_use]
pub fn scalar(generation: Generation, number: u32) -> Operand {
    // Before RDNA3 the numbers of null and m0 are the other way round.
    let swapped = generation < Generation::Rdna3;
    Operand::Scalar(match number as u16 & 127 {
        NULL if swapped => M0,
        M0 if swapped => NULL,
        number => number,
    })
}

/// A source of a field of 8 or 9 bits. `None` of numbers that mean nothing here, or more than an
/// operand.
#[must_use]
pub fn source(generation: Generation, number: u32, literal: u32) -> Option<Operand> {
    Some(match number {
        0..=127 => scalar(generation, number),
        128..=192 => integer(number as i32 - 128),
        193..=208 => integer(192 - number as i32),
        240..=247 => {
            let value = [0.5f32, 1.0, 2.0, 4.0][(number as usize - 240) / 2];
            let value = if number.is_multiple_of(2) { value } else { -value };
            let half = half::f16::from_f32(value).to_bits();
            Operand::Inline(Inline { half, word: value.to_bits(), double: f64::from(value).to_bits() })
        }
        // 1/(2π).
        248 => Operand::Inline(Inline { half: 0x3118, word: 0x3e22_f983, double: 0x3fc4_5f30_6dc9_c882 }),
        253 => Operand::Scc,
        LITERAL => Operand::Literal(literal),
        VECTOR..=511 => Operand::Vector((number - VECTOR) as u16),
        _ => return None,
    })
}

fn integer(value: i32) -> Operand {
    Operand::Inline(Inline { half: value as u16, word: value as u32, double: i64::from(value) as u64 })
}
