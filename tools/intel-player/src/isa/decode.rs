//! From words to an instruction. Fields are named by their last bit and their first.

use super::bits::{Bits, bit, field};
use super::instruction::{Extended, Instruction, Message, Operation, Place, Plan, Source, Target, Type};
use super::{Generation, compaction, compaction_9, decode_9, file};

/// How many sources an operation has in its text and when it is carried out.
#[must_use]
pub fn sources(operation: Operation, function: u8) -> usize {
    use Operation::*;
    match operation {
        Mov | Not | Bfrev | Frc | Rndu | Rndd | Rnde | Rndz | Lzd | Fbh | Fbl | Cbit => 1,
        Math if matches!(function, 9..=13) => 2,
        Math => 1,
        Sync | Nop | Illegal | Jmpi | If | Else | Endif | While | Break | Cont | Halt | Wait | Send | Sendc | Sends => {
            0
        }
        it if it.has_three() => 3,
        _ => 2,
    }
}

/// Whether an operation leads elsewhere.
#[must_use]
pub fn branches(operation: Operation) -> bool {
    jumps(operation) > 0
}

/// How many places an operation leads to.
#[must_use]
pub fn jumps(operation: Operation) -> usize {
    use Operation::*;
    match operation {
        If | Else | Break | Cont | Halt => 2,
        Endif | While | Jmpi => 1,
        _ => 0,
    }
}

/// The operation of a number.
pub(super) fn operation(number: u64) -> Option<Operation> {
    use Operation::*;
    Some(match number {
        0 => Illegal,
        1 => Sync,
        32 => Jmpi,
        34 => If,
        36 => Else,
        37 => Endif,
        39 => While,
        40 => Break,
        41 => Cont,
        42 => Halt,
        49 => Send,
        50 => Sendc,
        56 => Math,
        64 => Add,
        65 => Mul,
        66 => Avg,
        67 => Frc,
        68 => Rndu,
        69 => Rndd,
        70 => Rnde,
        71 => Rndz,
        72 => Mac,
        73 => Mach,
        74 => Lzd,
        75 => Fbh,
        76 => Fbl,
        77 => Cbit,
        78 => Addc,
        79 => Subb,
        82 => Add3,
        88 => Dp4a,
        89 => Dpas,
        91 => Mad,
        96 => Nop,
        97 => Mov,
        98 => Sel,
        100 => Not,
        101 => And,
        102 => Or,
        103 => Xor,
        104 => Shr,
        105 => Shl,
        107 => Bfn,
        108 => Asr,
        110 => Ror,
        111 => Rol,
        112 => Cmp,
        113 => Cmpn,
        114 => Csel,
        119 => Bfrev,
        120 => Bfe,
        121 => Bfi1,
        122 => Bfi2,
        _ => return None,
    })
}

/// The type of a number: the size in its lower two bits, then signed, then floating point.
pub(super) fn kind(number: u64, immediate: bool) -> Result<Type, String> {
    use Type::*;
    Ok(match (number, immediate) {
        (0, false) => UB,
        (4, false) => B,
        (0, true) => UV,
        (4, true) => V,
        (8, true) => VF,
        (13, _) => BF,
        (1, _) => UW,
        (2, _) => UD,
        (3, _) => UQ,
        (5, _) => W,
        (6, _) => D,
        (7, _) => Q,
        (9, _) => HF,
        (10, _) => F,
        (11, _) => DF,
        _ => return Err(format!("type {number}")),
    })
}

/// Where the fields are that all instructions have: each by its last bit and its first.
pub(super) struct Layout {
    pub channels: (u32, u32),
    /// The first channel, in eights, and whether four more.
    pub first: (u32, u32),
    pub four: u32,
    pub all: u32,
    pub predicate: (u32, u32),
    pub inverted: u32,
    pub flag: (u32, u32),
    pub condition: (u32, u32),
    pub saturate: u32,
    pub accumulate: u32,
}

const LAYOUT: Layout = Layout {
    channels: (18, 16),
    first: (21, 20),
    four: 19,
    all: 31,
    predicate: (27, 24),
    inverted: 28,
    flag: (23, 22),
    condition: (95, 92),
    saturate: 34,
    accumulate: 33,
};

/// Decodes the two or four words of an instruction.
///
/// # Errors
///
/// What of it does not exist or is missing here.
pub fn decode(generation: Generation, words: &[u32], at: u32) -> Result<Instruction, String> {
    let nine = generation == Generation::Nine;
    let number = u64::from(words[0] & 0x7f);
    let operation = if nine { decode_9::operation(number) } else { operation(number) }
        .ok_or_else(|| format!("operation {number}"))?;
    let bits = match *words {
        [a, b] => {
            let compact = u64::from(a) | u64::from(b) << 32;
            match (nine, operation.has_three()) {
                (true, true) => compaction_9::expand_three(compact),
                (true, false) => compaction_9::expand_two(compact),
                (false, true) => compaction::expand_three(generation, compact),
                (false, false) => compaction::expand_two(generation, compact),
            }
        }
        [a, b, c, d] => Bits::from(a) | Bits::from(b) << 32 | Bits::from(c) << 64 | Bits::from(d) << 96,
        _ => return Err("length".into()),
    };
    let mut it = begin(bits, at, operation, if nine { &decode_9::LAYOUT } else { &LAYOUT });
    if usize::from(it.first) + usize::from(it.channels) > 32 {
        return Err("more than 32 channels".into());
    }
    let arithmetic = match operation {
        Operation::Nop | Operation::Sync | Operation::Wait => false,
        Operation::Send | Operation::Sendc | Operation::Sends => {
            it.message = if nine { decode_9::message(bits, operation) } else { message(bits) };
            false
        }
        _ if branches(operation) => {
            if operation == Operation::Jmpi && (nine || !bit(bits, 46)) {
                return Err("a jump to a register".into());
            }
            let target = |offset: u64| at.wrapping_add(offset as u32);
            // `jmpi` counts from the instruction that follows it.
            let after = if operation == Operation::Jmpi { 4 * words.len() as u64 } else { 0 };
            it.jump = [target(field(bits, 127, 96) + after), target(field(bits, 95, 64))];
            if jumps(operation) == 1 {
                it.jump[1] = it.jump[0];
            }
            false
        }
        _ => true,
    };
    if !arithmetic {
        (it.saturate, it.accumulate) = (false, false);
        // Of `sync` it is the function.
        it.condition = if operation == Operation::Sync { it.condition } else { 0 };
        return Ok(it);
    }
    if operation == Operation::Dpas {
        super::systolic::operands(bits, &mut it)?;
        return Ok(it);
    }
    if nine {
        decode_9::operands(bits, &mut it)?
    } else {
        operands(bits, &mut it)?
    }
    check(&it)?;
    it.plan = crate::execute::fast::plan(&it);
    Ok(it)
}

/// An instruction with what all have.
fn begin(bits: Bits, at: u32, operation: Operation, layout: &Layout) -> Instruction {
    let get = |(last, first)| field(bits, last, first) as u8;
    Instruction {
        at,
        operation,
        channels: 1 << get(layout.channels),
        first: get(layout.first) * 8 + u8::from(bit(bits, layout.four)) * 4,
        all: bit(bits, layout.all),
        predicate: get(layout.predicate),
        inverted: bit(bits, layout.inverted),
        flag: get(layout.flag) * 16,
        condition: get(layout.condition),
        saturate: bit(bits, layout.saturate),
        accumulate: bit(bits, layout.accumulate),
        plan: Plan::General,
        is_target: false,
        to: Target { place: Place::Null, kind: Type::UD, stride: 1 },
        source: [Source::NONE; 3],
        jump: [0; 2],
        message: Message::default(),
    }
}

fn operands(bits: Bits, it: &mut Instruction) -> Result<(), String> {
    if it.operation.has_three() {
        three(bits, it)?;
        if it.operation == Operation::Bfn {
            it.message.function = (field(bits, 95, 92) << 4 | field(bits, 87, 84)) as u8;
            it.condition = 0;
            // Where others have modifiers, it has a part of its function.
            for source in &mut it.source {
                (source.negate, source.absolute) = (false, false);
            }
        }
        return Ok(());
    }
    it.to = target(bits)?;
    for k in 0..sources(it.operation, it.condition) {
        it.source[k] = source(bits, k as u32)?;
    }
    Ok(())
}

/// Whether everything that it accesses is in the register file.
pub(super) fn check(it: &Instruction) -> Result<(), String> {
    let operands = it.source.iter().map(|source| (source.place, source.kind)).chain([(it.to.place, it.to.kind)]);
    for (place, kind) in operands {
        // How elements of other sizes lie there is not known here.
        if matches!(place, Place::Accumulator(_)) && kind.bytes() != 4 {
            return Err(format!("an accumulator of {kind:?}"));
        }
    }
    let channels = usize::from(it.channels);
    if let Place::File(byte) = it.to.place {
        let last = usize::from(byte) + (channels - 1) * usize::from(it.to.stride.max(1)) * it.to.kind.bytes();
        if last + it.to.kind.bytes() > file::BYTES {
            return Err("a destination beyond the registers".into());
        }
    }
    for source in &it.source[..sources(it.operation, it.condition)] {
        if let Place::File(byte) = source.place {
            let (width, rows) = (usize::from(source.width), channels.div_ceil(source.width.into()));
            let last =
                (rows - 1) * usize::from(source.vertical) + (width.min(channels) - 1) * usize::from(source.horizontal);
            if usize::from(byte) + (last + 1) * source.kind.bytes() > file::BYTES {
                return Err("a source beyond the registers".into());
            }
        }
    }
    Ok(())
}

/// Where a register of a file, 1 for general ones, and a byte of it are.
pub(super) fn place(general: bool, number: u64, byte: u64, kind: Type) -> Result<Place, String> {
    if general {
        return Ok(Place::File((number as usize * file::REGISTER + byte as usize) as u16))
            .and_then(|place| if number < 128 { Ok(place) } else { Err(format!("register g{number}")) });
    }
    Ok(match number >> 4 {
        0 => Place::Null,
        2 => {
            let each = file::REGISTER / kind.bytes();
            Place::Accumulator(((number as usize & 15) * each + byte as usize / kind.bytes()) as u16)
        }
        _ => Place::File(
            file::architecture(number as u8, byte as usize)
                .ok_or_else(|| format!("architecture register {number:#x}"))?,
        ),
    })
}

pub(super) fn stride(number: u64) -> u8 {
    if number == 0 { 0 } else { 1 << (number - 1) }
}

/// What an address register says: the element in the upper bits of the register's number, and a
/// signed number of bytes.
pub(super) fn indirect(element: u64, offset: u64, each: bool) -> Place {
    Place::Indirect { element: element as u8, offset: ((offset << 6) as i16) >> 6, each }
}

fn target(bits: Bits) -> Result<Target, String> {
    let get = |last, first| field(bits, last, first);
    let kind = kind(get(39, 36), false)?;
    let place = if bit(bits, 35) {
        indirect(get(63, 60), get(59, 50), false)
    } else {
        place(bit(bits, 50), get(63, 56), get(55, 51), kind)?
    };
    Ok(Target { place, kind, stride: stride(get(49, 48)).max(1) })
}

/// A value in the upper words, as the type has it.
fn immediate(bits: Bits, number: u64) -> Result<Source, String> {
    let kind = kind(number, true)?;
    let word = field(bits, 127, 96);
    let value = match kind.bytes() {
        2 => word & 0xffff,
        8 => field(bits, 95, 64) << 32 | word,
        _ => word,
    };
    // A vector has an element for each channel.
    let vertical = u8::from(matches!(kind, Type::V | Type::UV | Type::VF));
    Ok(Source { place: Place::Immediate(value), kind, vertical, ..Source::NONE })
}

pub(super) fn region(vertical: u64, width: u64, horizontal: u64) -> (u8, u8, u8) {
    let vertical = if vertical == 15 { 0 } else { stride(vertical) };
    (vertical, 1 << width, stride(horizontal))
}

/// The first or the second source. The fields of the second follow those of the first by 32 bits,
/// but for its type and signs.
fn source(bits: Bits, number: u32) -> Result<Source, String> {
    let (value, type_, signs) = [(46, (43, 40), 44), (47, (91, 88), 120)][number as usize];
    let type_ = field(bits, type_.0, type_.1);
    if bit(bits, value) {
        return immediate(bits, type_);
    }
    let kind = kind(type_, false)?;
    let its = bits >> (32 * number);
    let get = |last, first| field(its, last, first);
    let place = if get(80, 80) != 0 {
        indirect(get(79, 76), get(75, 66), get(87, 84) == 15)
    } else {
        place(get(66, 66) != 0, get(79, 72), get(71, 67), kind)?
    };
    let (vertical, width, horizontal) = region(get(87, 84), get(83, 81), get(65, 64));
    let (absolute, negate) = (bit(bits, signs), bit(bits, signs + 1));
    Ok(Source { place, kind, vertical, width, horizontal, negate, absolute })
}

/// Operands of an operation of three sources.
fn three(bits: Bits, it: &mut Instruction) -> Result<(), String> {
    let get = |last, first| field(bits, last, first);
    let float = if bit(bits, 39) { 8 } else { 0 };
    let kind_of = |number: u64| kind(number | float, false);
    let to = kind_of(get(38, 36))?;
    it.to = Target {
        place: place(bit(bits, 50), get(63, 56), get(55, 54) * 8, to)?,
        kind: to,
        stride: if bit(bits, 48) { 2 } else { 1 },
    };
    let kinds = [kind_of(get(42, 40))?, kind_of(get(90, 88))?, kind_of(get(82, 80))?];
    // Rows of the first two sources; their width follows, and those of the third follow each other.
    let row = |number: u64| [0, 1, 4, 8][number as usize];
    let two = |vertical: u8, horizontal: u8| match (vertical, horizontal) {
        (0, 0) => (0, 1, 0),
        (v, 0) => (v, v, 0),
        (v, h) => (v, (v / h).max(1), h),
    };
    let verticals = [row(get(43, 43) << 1 | get(35, 35)), row(get(91, 91) << 1 | get(83, 83))];
    let signs = [(45, 44), (87, 86), (85, 84)];
    for k in 0..3 {
        let (negate, absolute) = (bit(bits, signs[k].0), bit(bits, signs[k].1));
        let kind = kinds[k];
        let (value, general, number, byte, horizontal) = match k {
            0 => (bit(bits, 46).then(|| get(79, 64)), bit(bits, 66), get(79, 72), get(71, 67), get(65, 64)),
            1 => (None, bit(bits, 98), get(111, 104), get(103, 99), get(97, 96)),
            _ => (bit(bits, 47).then(|| get(127, 112)), bit(bits, 114), get(127, 120), get(119, 115), get(113, 112)),
        };
        it.source[k] = if let Some(value) = value {
            // A word of 16 bits, of which signed types repeat the sign.
            let value = if kind.is_signed() { value as u16 as i16 as u32 } else { value as u32 };
            Source { place: Place::Immediate(value.into()), kind, ..Source::NONE }
        } else {
            let horizontal = stride(horizontal);
            let (vertical, width, horizontal) = match k {
                2 => (horizontal, 1, horizontal),
                _ => two(verticals[k], horizontal),
            };
            let place = place(general, number, byte, kind)?;
            Source { place, kind, vertical, width, horizontal, negate, absolute }
        };
    }
    Ok(())
}

/// A message. The bits of its descriptors are scattered over the instruction.
fn message(bits: Bits) -> Message {
    let get = |last, first| field(bits, last, first);
    let descriptor = get(123, 122) << 30 | get(71, 67) << 25 | get(55, 51) << 20 | get(121, 113) << 11 | get(91, 81);
    let extended = get(127, 124) << 28 | get(97, 96) << 26 | get(65, 64) << 24 | get(47, 35) << 11 | get(103, 99) << 6;
    let register = |file: u32, number: u64| bit(bits, file).then_some(number as u8);
    Message {
        function: get(95, 92) as u8,
        descriptor: (!bit(bits, 48)).then_some(descriptor as u32),
        extended: if bit(bits, 49) { Extended::Address(get(42, 40) as u8) } else { Extended::Value(extended as u32) },
        end: bit(bits, 34),
        registers: [register(66, get(79, 72)), register(98, get(111, 104))],
        answer: register(50, get(63, 56)),
    }
}
