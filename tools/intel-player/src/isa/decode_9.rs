//! From words to an instruction of the 9th generation, whose fields are elsewhere than those of Xe.

use super::bits::{Bits, bit, field};
use super::decode::{Layout, indirect, place, region, sources, stride};
use super::instruction::{Extended, Instruction, Message, Operation, Place, Source, Target, Type};

/// The operation of a number.
pub(super) fn operation(number: u64) -> Option<Operation> {
    use Operation::*;
    Some(match number {
        1 => Mov,
        2 => Sel,
        4 => Not,
        5 => And,
        6 => Or,
        7 => Xor,
        8 => Shr,
        9 => Shl,
        12 => Asr,
        16 => Cmp,
        17 => Cmpn,
        18 => Csel,
        23 => Bfrev,
        24 => Bfe,
        25 => Bfi1,
        26 => Bfi2,
        48 => Wait,
        51 => Sends,
        126 => Nop,
        92 => Lrp,
        // The same as on Xe: branches, messages, arithmetic.
        0 | 32..=50 | 56..=81 | 91 => super::decode::operation(number)?,
        _ => return None,
    })
}

fn kind(number: u64, immediate: bool) -> Result<Type, String> {
    use Type::*;
    let registers = [UD, D, UW, W, UB, B, DF, F, UQ, Q, HF];
    let immediates = [UD, D, UW, W, UV, VF, V, F, UQ, Q, DF, HF];
    let kinds = if immediate { &immediates[..] } else { &registers[..] };
    kinds.get(number as usize).copied().ok_or_else(|| format!("type {number}"))
}

/// Where the fields are that all instructions have.
pub(super) const LAYOUT: Layout = Layout {
    channels: (23, 21),
    first: (13, 12),
    four: 11,
    all: 34,
    predicate: (19, 16),
    inverted: 20,
    flag: (33, 32),
    condition: (27, 24),
    saturate: 31,
    accumulate: 28,
};

/// Reads the operands of arithmetic.
pub(super) fn operands(bits: Bits, it: &mut Instruction) -> Result<(), String> {
    if it.operation.has_three() {
        return three(bits, it);
    }
    if bit(bits, 8) {
        return Err("an arrangement of four channels".into());
    }
    it.to = target(bits)?;
    for k in 0..sources(it.operation, it.condition) {
        it.source[k] = source(bits, k as u32)?;
    }
    Ok(())
}

fn target(bits: Bits) -> Result<Target, String> {
    let get = |last, first| field(bits, last, first);
    let kind = kind(get(40, 37), false)?;
    let place = if bit(bits, 63) {
        indirect(get(60, 57), get(47, 47) << 9 | get(56, 48), false)
    } else {
        place(get(36, 35) == 1, get(60, 53), get(52, 48), kind)?
    };
    Ok(Target { place, kind, stride: stride(get(62, 61)).max(1) })
}

/// The first or the second source. The fields of the second follow those of the first by 32 bits,
/// but for its file and type.
fn source(bits: Bits, number: u32) -> Result<Source, String> {
    let get = |last, first| field(bits, last, first);
    let (file, type_) = if number == 0 { (get(42, 41), get(46, 43)) } else { (get(90, 89), get(94, 91)) };
    if file == 3 {
        let kind = kind(type_, true)?;
        let value = match kind.bytes() {
            2 => get(111, 96),
            8 => get(127, 64),
            _ => get(127, 96),
        };
        let vertical = u8::from(matches!(kind, Type::V | Type::UV | Type::VF));
        return Ok(Source { place: Place::Immediate(value), kind, vertical, ..Source::NONE });
    }
    let by = 32 * number;
    let get = |last: u32, first: u32| field(bits, last + by, first + by);
    let kind = kind(type_, false)?;
    let place = if get(79, 79) != 0 {
        let last = if number == 0 { field(bits, 95, 95) } else { field(bits, 121, 121) };
        indirect(get(76, 73), last << 9 | get(72, 64), get(88, 85) == 15)
    } else {
        place(file == 1, get(76, 69), get(68, 64), kind)?
    };
    let (vertical, width, horizontal) = region(get(88, 85), get(84, 82), get(81, 80));
    Ok(Source { place, kind, vertical, width, horizontal, negate: get(78, 78) != 0, absolute: get(77, 77) != 0 })
}

/// Operands of an operation of three sources, in the arrangement of four channels: of its swizzles
/// there are the one that changes nothing and the one that repeats an element.
fn three(bits: Bits, it: &mut Instruction) -> Result<(), String> {
    let get = |last, first| field(bits, last, first);
    if !bit(bits, 8) || get(52, 49) != 15 {
        return Err("this arrangement of three sources".into());
    }
    let kind = |number: u64| {
        [Type::F, Type::D, Type::UD, Type::DF, Type::HF]
            .get(number as usize)
            .copied()
            .ok_or_else(|| format!("type {number}"))
    };
    let to = kind(get(48, 46))?;
    it.to = Target { place: place(true, get(63, 56), get(55, 53) * 4, to)?, kind: to, stride: 1 };
    let common = kind(get(45, 43))?;
    // Bits that say that one of the last two is of f16 among f32.
    let mixed = [false, bit(bits, 36), bit(bits, 35)];
    for (k, mixed) in mixed.into_iter().enumerate() {
        let by = 21 * k as u32;
        let get = |last: u32, first: u32| field(bits, last + by, first + by);
        let repeated = get(64, 64) != 0;
        if !repeated && get(72, 65) != 0xe4 {
            return Err(format!("swizzle {:#x}", get(72, 65)));
        }
        let kind = if mixed && common == Type::F { Type::HF } else { common };
        let place = place(true, get(83, 76), get(75, 73) * 4 + get(84, 84) * 2, kind)?;
        let (vertical, width, horizontal) = if repeated { (0, 1, 0) } else { (4, 4, 1) };
        let signs = 37 + 2 * k as u32;
        it.source[k] = Source {
            place,
            kind,
            vertical,
            width,
            horizontal,
            negate: bit(bits, signs + 1),
            absolute: bit(bits, signs),
        };
    }
    Ok(())
}

pub(super) fn message(bits: Bits, operation: Operation) -> Message {
    if operation == Operation::Sends { message_of_two(bits) } else { message_of_one(bits) }
}

/// A message of one part.
fn message_of_one(bits: Bits) -> Message {
    let get = |last, first| field(bits, last, first);
    let immediate = get(90, 89) == 3;
    let extended = get(94, 91) << 28 | get(88, 85) << 24 | get(83, 80) << 20 | get(67, 64) << 16;
    Message {
        function: get(27, 24) as u8,
        descriptor: immediate.then(|| get(126, 96) as u32),
        extended: Extended::Value(if immediate { extended as u32 } else { 0 }),
        end: bit(bits, 127),
        registers: [(get(42, 41) == 1).then(|| get(76, 69) as u8), None],
        answer: (get(36, 35) == 1).then(|| get(60, 53) as u8),
    }
}

/// A message of two parts.
fn message_of_two(bits: Bits) -> Message {
    let get = |last, first| field(bits, last, first);
    let extended = get(95, 80) << 16 | get(67, 64) << 6;
    Message {
        function: get(27, 24) as u8,
        descriptor: (!bit(bits, 77)).then(|| get(126, 96) as u32),
        extended: if bit(bits, 61) { Extended::Address(get(82, 80) as u8) } else { Extended::Value(extended as u32) },
        end: bit(bits, 127),
        registers: [Some(get(76, 69) as u8), bit(bits, 36).then(|| get(51, 44) as u8)],
        answer: bit(bits, 35).then(|| get(60, 53) as u8),
    }
}
