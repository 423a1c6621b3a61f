//! Which registers an instruction reads and writes, and what it waits for: what is known of it
//! without carrying it out.

use crate::isa::Generation;
use crate::isa::instruction::{Encoding, Instruction, Operand};
use crate::isa::tables::registers;

/// Registers one after the other; none if the first is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The first one.
    pub first: Operand,
    /// How many.
    pub count: u16,
}

/// How many registers a type of a table has, for waves of `lanes`.
fn words(kind: u8, lanes: usize) -> u16 {
    if kind == b'm' { lanes as u16 / 32 } else { registers(kind) }
}

/// What an instruction reads.
pub fn sources(it: &Instruction, lanes: usize) -> impl Iterator<Item = Registers> + '_ {
    // With a scalar base, which no table lists, the address is an offset of one register.
    let based = it.encoding == Encoding::Global && it.source.iter().any(|it| matches!(it, Operand::Scalar(_)));
    let of = move |k: usize| match it.source[k] {
        Operand::Scalar(_) if based => 2,
        _ if based && k == 0 => 1,
        _ if k == 2 && it.name.starts_with("v_wmma") => result_words(it, lanes),
        _ => words(it.signature.as_bytes().get(k).copied().unwrap_or(b'w'), lanes),
    };
    let named = it.source.iter().enumerate().map(move |(k, &first)| Registers { first, count: of(k) });
    // What accumulates reads its result.
    let accumulates = it.name.contains("fmac") || it.name.contains("_mac_") || it.name.contains("dot2acc");
    let result = accumulates.then(|| Registers { first: it.to, count: result_words(it, lanes) });
    named.chain(result).filter(|registers| registers.first != Operand::None)
}

/// How many registers the result has. Tables have those of matrices for waves of 64.
pub fn result_words(it: &Instruction, lanes: usize) -> u16 {
    let more = if it.name.starts_with("v_wmma") { 64 / lanes as u16 } else { 1 };
    more * words(it.results.as_bytes().first().copied().unwrap_or(b'w'), lanes)
}

/// What an instruction writes.
pub fn results(it: &Instruction, lanes: usize) -> impl Iterator<Item = Registers> {
    let first = Registers { first: it.to, count: result_words(it, lanes) };
    let second = Registers { first: it.also, count: lanes as u16 / 32 };
    [first, second].into_iter().filter(|registers| registers.first != Operand::None)
}

/// Of an instruction that waits, how many of the newest loads from memory, and how many accesses of
/// shared memory and scalar loads, may still be on their way.
#[must_use]
pub fn waits(it: &Instruction, generation: Generation) -> Option<(u32, u32)> {
    let count = it.offset as u32;
    Some(match it.name {
        "s_waitcnt" if generation >= Generation::Rdna3 => (count >> 10 & 63, count >> 4 & 63),
        "s_waitcnt" => (count & 15 | count >> 10 & 48, count >> 8 & 63),
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => (count & 63, u32::MAX),
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" | "s_wait_kmcnt" => (u32::MAX, count & 63),
        "s_wait_loadcnt_dscnt" => (count >> 8 & 63, count & 63),
        "s_endpgm" => (0, 0),
        _ => return None,
    })
}
