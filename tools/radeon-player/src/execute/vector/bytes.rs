//! Sums of differences of bytes, and averages of bytes.

use crate::execute::{Group, Handler, Outcome, Trap, wave::Wave};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

fn byte(word: u64, at: u32) -> u32 {
    (word >> (8 * at)) as u32 & 255
}

/// The differences of four bytes each, added to a sum.
#[inline(always)]
fn differences(a: u32, b: u32, sum: u32) -> u32 {
    (0..4).fold(sum, |sum, at| sum.wrapping_add(byte(a.into(), at).abs_diff(byte(b.into(), at))))
}

/// The same, without bytes that are zero in the second operand.
#[inline(always)]
fn masked_differences(a: u32, b: u32, sum: u32) -> u32 {
    let counted = (0..4).filter(|&at| byte(b.into(), at) != 0);
    counted.fold(sum, |sum, at| sum.wrapping_add(byte(a.into(), at).abs_diff(byte(b.into(), at))))
}

/// Sums for four places of the first operand, a byte apart, each of 16 bits.
#[inline(always)]
fn four_places(a: u64, b: u32, sums: u64, sum: fn(u32, u32, u32) -> u32) -> u64 {
    (0..4).fold(0, |all, place| {
        let before = (sums >> (16 * place)) as u16;
        let after = sum((a >> (8 * place)) as u32, b, before.into()) as u16;
        all | u64::from(after) << (16 * place)
    })
}

/// Half the sum of two bytes, rounded up where the third operand has a bit.
#[inline(always)]
fn averages(a: u32, b: u32, round: u32) -> u32 {
    (0..4).fold(0, |all, at| {
        let sum = byte(a.into(), at) + byte(b.into(), at) + (round >> (8 * at) & 1);
        all | (sum >> 1) << (8 * at)
    })
}

mod table {
    use super::*;

    super::super::operations! {
        "v_sad_hi_u8"(a: u32, b: u32, c: u32) -> u32 { (differences(a, b, 0) << 16).wrapping_add(c) }
        "v_msad_u8"(a: u32, b: u32, c: u32) -> u32 { masked_differences(a, b, c) }
        "v_lerp_u8"(a: u32, b: u32, c: u32) -> u32 { averages(a, b, c) }
        "v_qsad_pk_u16_u8"(a: u64, b: u32, c: u64) -> u64 { four_places(a, b, c, differences) }
        "v_mqsad_pk_u16_u8"(a: u64, b: u32, c: u64) -> u64 { four_places(a, b, c, masked_differences) }
    }
}

/// Sums for four places, each of 32 bits in a register of its own.
fn four_wide_places<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (Operand::Vector(to), Operand::Vector(sums)) = (it.to, it.source[2]) else {
        return Err(Trap::new(FaultKind::Missing));
    };
    let (a, b) = (wave.doubles(it.source[0]), wave.words(it.source[1]));
    // All are read before one is written: they may be the same registers.
    let rows: [_; 4] = std::array::from_fn(|place| {
        let before = wave.words(Operand::Vector(sums + place as u16));
        std::array::from_fn(|lane| masked_differences((a[lane] >> (8 * place)) as u32, b[lane], before[lane]))
    });
    for (place, row) in rows.iter().enumerate() {
        wave.put(Operand::Vector(to + place as u16), row);
    }
    Ok(())
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    match name {
        "v_mqsad_u32_u8" => Some(four_wide_places),
        _ => table::find(name),
    }
}
