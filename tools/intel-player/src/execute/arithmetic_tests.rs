//! Arithmetic by known answers, and the fast path against what has all types.

use half::{bf16, f16};

use super::run::compute;
use super::thread::Thread;
use super::{fast, region};
use crate::isa::file;
use crate::isa::instruction::{Instruction, Message, Operation, Place, Plan, Source, Target, Type};
use crate::isa::sources;

fn register(number: u16, kind: Type) -> Source {
    Source { place: Place::File(number * 32), kind, vertical: 8, width: 8, horizontal: 1, ..Source::NONE }
}

fn value(bits: u64, kind: Type) -> Source {
    Source { place: Place::Immediate(bits), kind, ..Source::NONE }
}

/// An instruction of eight channels, whose result is `g10`.
fn instruction(operation: Operation, kind: Type, from: &[Source]) -> Instruction {
    let mut source = [Source::NONE; 3];
    source[..from.len()].copy_from_slice(from);
    Instruction {
        at: 0,
        operation,
        channels: 8,
        first: 0,
        all: false,
        predicate: 0,
        inverted: false,
        flag: 0,
        condition: 0,
        saturate: false,
        accumulate: false,
        plan: Plan::General,
        is_target: false,
        to: Target { place: Place::File(320), kind, stride: 1 },
        source,
        jump: [0; 2],
        message: Message::default(),
    }
}

/// The first word of `g10` after an instruction of values; subnormals are kept.
fn result(it: &Instruction) -> u32 {
    let mut thread = Thread::new(0xff);
    thread.set_word(file::CONTROL, 0x4c0);
    compute(it, &mut thread).expect("carried out");
    thread.word(320)
}

fn of_words(operation: Operation, kind: Type, words: &[u32]) -> u32 {
    let from: Vec<_> = words.iter().map(|&word| value(word.into(), kind)).collect();
    result(&instruction(operation, kind, &from))
}

#[test]
fn integers() {
    use Operation::*;
    for (operation, kind, words, expected) in [
        (Add, Type::D, &[5, 0xffff_fffe][..], 3),
        (Mul, Type::D, &[0x1_0001, 0x1_0001], 0x2_0001),
        (Asr, Type::D, &[0x8000_0000, 31], 0xffff_ffff),
        (Shr, Type::UD, &[0x8000_0000, 33], 0x4000_0000),
        (Avg, Type::D, &[3, 4], 4),
        (Rol, Type::UD, &[0x8000_0001, 4], 0x18),
        (Lzd, Type::UD, &[1], 31),
        (Fbh, Type::UD, &[0], 0xffff_ffff),
        (Fbh, Type::D, &[0xffff_fff0], 28),
        (Fbl, Type::UD, &[8], 3),
        (Cbit, Type::UD, &[0xf0f0], 8),
        (Bfrev, Type::UD, &[1], 0x8000_0000),
        (Bfe, Type::UD, &[4, 8, 0xabcd], 0xb),
        (Bfe, Type::D, &[4, 8, 0xabcd], 0xffff_fffb),
        (Bfe, Type::UD, &[31, 4, 0xffff_ffff], 0x0fff_ffff),
        (Bfi1, Type::UD, &[4, 8], 0xf00),
        (Bfi2, Type::UD, &[0xf00, 0xabcd, 0x1234], 0x1b34),
        (Subb, Type::UD, &[1, 2], 0xffff_ffff),
    ] {
        assert_eq!(of_words(operation, kind, words), expected, "{operation:?} {words:x?}");
    }
    let mut clamped = instruction(Add, Type::UB, &[value(200, Type::UD), value(100, Type::UD)]);
    clamped.saturate = true;
    assert_eq!(result(&clamped) & 0xff, 255);
    // The upper half of a product, from the accumulator.
    let mut thread = Thread::new(0xff);
    let (a, b) = (0xdead_beefu32, 0xcafe_babeu32);
    let mut low = instruction(Mul, Type::UD, &[value(a.into(), Type::UD), value(u64::from(b & 0xffff), Type::UW)]);
    low.to.place = Place::Accumulator(0);
    compute(&low, &mut thread).expect("carried out");
    let high = instruction(Mach, Type::UD, &[value(a.into(), Type::UD), value(b.into(), Type::UD)]);
    compute(&high, &mut thread).expect("carried out");
    assert_eq!(thread.word(320), ((u64::from(a) * u64::from(b)) >> 32) as u32);
    // Without a sign also in 64 bits.
    let mut larger = instruction(Sel, Type::UQ, &[value(1, Type::UQ), value(u64::MAX, Type::UQ)]);
    larger.condition = 4;
    assert_eq!(result(&larger), u32::MAX);
    // The divisions of the math unit.
    for (function, signed, expected) in [(12, true, -3i32 as u32), (13, true, -1i32 as u32), (12, false, 0x5555_5552)] {
        let kind = if signed { Type::D } else { Type::UD };
        let mut it = instruction(Math, kind, &[value(-10i32 as u32 as u64, kind), value(3, kind)]);
        it.condition = function;
        assert_eq!(result(&it), expected);
    }
}

/// The sign of a whole number is changed before it becomes a float: zero has none.
#[test]
fn negative_whole_numbers_as_floats() {
    for (to, minus_one) in [(Type::F, 0xbf80_0000u64), (Type::HF, 0xbc00), (Type::DF, 0xbff0_0000_0000_0000)] {
        for from in [Type::D, Type::W, Type::Q] {
            for (word, expected) in [(0, 0), (1, minus_one)] {
                let mut it = instruction(Operation::Mov, to, &[value(word, from)]);
                it.source[0].negate = true;
                let mut thread = Thread::new(0xff);
                thread.set_word(file::CONTROL, 0x4c0);
                compute(&it, &mut thread).expect("carried out");
                let bits = u64::from(thread.word(324)) << 32 | u64::from(thread.word(320));
                let mask = u64::MAX >> (64 - 8 * to.bytes());
                assert_eq!(bits & mask, expected, "{word} of {from:?} as {to:?}");
            }
        }
    }
    let mut float = instruction(Operation::Mov, Type::HF, &[value(0, Type::F)]);
    float.source[0].negate = true;
    assert_eq!(result(&float) & 0xffff, 0x8000);
}

#[test]
fn floats() {
    use Operation::*;
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let float = |operation, values: &[f32]| f32::from_bits(of_words(operation, Type::F, &bits(values)));
    assert_eq!(float(Add, &[1.5, 2.25]), 3.75);
    // One rounding: the square of 1 + 2^-12 less 1 + 2^-11 leaves the last place.
    let near = 1.0 + 2f32.powi(-12);
    assert_eq!(float(Mad, &[-(1.0 + 2f32.powi(-11)), near, near]), 2f32.powi(-24));
    assert_eq!(
        (float(Frc, &[-0.25]), float(Rndd, &[-0.5]), float(Rnde, &[2.5]), float(Rndz, &[-1.5])),
        (0.75, -1.0, 2.0, -1.0)
    );
    let least = f32::MIN_POSITIVE / 4.0;
    assert_eq!(float(Mul, &[least, 2.0]), least * 2.0);
    // A number is chosen before what is none, on either side.
    for (condition, a, b, expected) in [(5, f32::NAN, 2.0, 2.0), (4, 1.0, f32::NAN, 1.0), (4, 1.0, 3.0, 3.0)] {
        for plan in [Plan::General, Plan::Singles] {
            let from = [value(a.to_bits().into(), Type::F), value(b.to_bits().into(), Type::F)];
            let it = Instruction { condition, plan, ..instruction(Sel, Type::F, &from) };
            assert_eq!(f32::from_bits(result(&it)), expected);
        }
    }
    // A choice by flags keeps subnormals.
    for plan in [Plan::General, Plan::Singles] {
        let it = Instruction {
            predicate: 1,
            plan,
            ..instruction(Sel, Type::F, &[register(2, Type::F), value(0x0010_0000, Type::F)])
        };
        let mut thread = Thread::new(0xff);
        compute(&it, &mut thread).expect("carried out");
        assert_eq!(thread.word(320), 0x0010_0000);
    }
    let convert = |from: Source, to: Type| result(&instruction(Mov, to, &[from]));
    assert_eq!(convert(value((-1.75f32).to_bits().into(), Type::F), Type::D), -1i32 as u32);
    assert_eq!(convert(value(3e9f32.to_bits().into(), Type::F), Type::D), i32::MAX as u32);
    assert_eq!(convert(value(f32::NAN.to_bits().into(), Type::F), Type::UD), 0);
    assert_eq!(convert(value(0xffff_ffff, Type::D), Type::F), (-1f32).to_bits());
    assert_eq!(convert(value(u64::MAX, Type::UQ), Type::F), 2f32.powi(64).to_bits());
    assert_eq!(convert(value(1.0f32.to_bits().into(), Type::F), Type::HF) & 0xffff, 0x3c00);
    assert_eq!(convert(value(0x7c01, Type::HF), Type::F) & 0x7f80_0000, 0x7f80_0000);
    let mut math = instruction(Math, Type::F, &[value(8f32.to_bits().into(), Type::F)]);
    for (function, expected) in [(1, 0.125), (2, 3.0), (3, 256.0), (4, 8f32.sqrt())] {
        math.condition = function;
        assert_eq!(f32::from_bits(result(&math)), expected);
    }
    // To zero instead of to the nearest.
    let up = f32::from_bits(0x3f80_1fff);
    assert_eq!((region::to_half(up, region::Mode(0)), region::to_half(up, region::Mode(0x30))), (0x3c01, 0x3c00));
}

#[test]
fn regions() {
    let mut thread = Thread::new(0xff);
    for k in 0..32 {
        thread.set_word(64 + 4 * k, k as u32);
    }
    let read = |thread: &Thread, vertical, width, horizontal, kind| {
        let source = Source { vertical, width, horizontal, ..register(2, kind) };
        thread.integers(&source, 8, false).expect("registers")[..8].to_vec()
    };
    assert_eq!(read(&thread, 8, 8, 1, Type::UD), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(read(&thread, 0, 1, 0, Type::UD), [0; 8]);
    assert_eq!(read(&thread, 16, 8, 2, Type::UW), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(read(&thread, 4, 2, 1, Type::UD), [0, 1, 4, 5, 8, 9, 12, 13]);
    assert_eq!(read(&thread, 0, 2, 1, Type::UD), [0, 1, 0, 1, 0, 1, 0, 1]);
    let vector = Source { place: Place::Immediate(0x8765_4321), kind: Type::V, ..Source::NONE };
    assert_eq!(thread.integers(&vector, 8, false).expect("a value")[..8], [1, 2, 3, 4, 5, 6, 7, -8]);
    // By an address register: the third element, four bytes further.
    thread.file[file::ADDRESS + 4..file::ADDRESS + 6].copy_from_slice(&72u16.to_le_bytes());
    let indirect = Source {
        place: Place::Indirect { element: 2, offset: 4, each: false },
        vertical: 1,
        width: 1,
        ..register(0, Type::UD)
    };
    assert_eq!(thread.integers(&indirect, 4, false).expect("registers")[..4], [3, 4, 5, 6]);
    // Every other element of the destination, of the channels that are on.
    let mut it = instruction(Operation::Mov, Type::UD, &[value(7, Type::UD)]);
    it.to.stride = 2;
    thread.active = 0b101;
    (0..16).for_each(|k| thread.set_word(320 + 4 * k, 0));
    compute(&it, &mut thread).expect("carried out");
    assert_eq!([0, 1, 2, 4].map(|k| thread.word(320 + 4 * k)), [7, 0, 0, 7]);
}

/// Numbers without order, among them what is special.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let special = [0, 1, 0x8000_0000, 0x7f80_0000, 0x7fc0_0000, 0xff80_0000, 0x3f80_0000, 0xffff_ffff, 3];
        let word = (self.0 >> 32) as u32;
        if word.is_multiple_of(3) { special[(word >> 8) as usize % special.len()] } else { word.rotate_left(7) }
    }
}

#[test]
fn the_fast_path_computes_the_same() {
    use Operation::*;
    let mut numbers = Numbers(1);
    let (mut fast_ones, mut count) = (0, 0);
    for round in 0..4000 {
        let operations = [Mov, And, Or, Xor, Not, Add, Mul, Mad, Shl, Shr, Asr, Cmp, Sel, Bfi2];
        let operation = operations[numbers.next() as usize % operations.len()];
        let kinds =
            if round % 2 == 0 { vec![Type::F] } else { vec![Type::D, Type::UD, Type::UW, Type::W, Type::UB, Type::B] };
        let mut pick = |what: &[Type]| what[numbers.next() as usize % what.len()];
        let from: Vec<_> = (0..3)
            .map(|k| {
                let mut source = register(2 + 2 * k, pick(&kinds));
                match pick(&[Type::F, Type::D, Type::UD, Type::W]) {
                    Type::F => (source.vertical, source.width, source.horizontal) = (0, 1, 0),
                    Type::W => (source.vertical, source.width, source.horizontal) = (4, 2, 1),
                    _ => {}
                }
                source.negate = pick(&[Type::F, Type::D, Type::UD]) == Type::F;
                source.absolute = source.kind == Type::F && pick(&[Type::F, Type::D]) == Type::F;
                source
            })
            .collect();
        let kind = if round % 2 == 0 { Type::F } else { pick(&[Type::D, Type::UD]) };
        let mut it = instruction(operation, kind, &from[..sources(operation, 0)]);
        it.channels = if numbers.next().is_multiple_of(2) { 8 } else { 16 };
        it.saturate = numbers.next().is_multiple_of(4);
        it.predicate = u8::from(numbers.next().is_multiple_of(2));
        let sets = operation != Sel && numbers.next().is_multiple_of(4);
        if operation == Cmp || operation == Sel && it.predicate == 0 || sets {
            it.condition = 1 + (numbers.next() % 6) as u8;
        }
        if it.condition != 0 && operation != Sel && numbers.next().is_multiple_of(2) {
            it.to.place = Place::Null;
        }
        it.plan = fast::plan(&it);
        count += 1;
        if it.plan == Plan::General {
            continue;
        }
        fast_ones += 1;
        let mut threads = [Thread::new(0xffff), Thread::new(0xffff)];
        for byte in (0..file::GENERAL).step_by(4) {
            let word = numbers.next();
            threads.iter_mut().for_each(|thread| thread.set_word(byte, word));
        }
        let (flags, active) = (numbers.next(), numbers.next() & 0xffff);
        let control = if numbers.next().is_multiple_of(2) { 0x80 } else { 0 };
        for thread in &mut threads {
            thread.set_word(file::FLAG, flags);
            thread.set_word(file::CONTROL, control);
            thread.active = active;
        }
        let [quick, slow] = &mut threads;
        compute(&it, quick).expect("carried out");
        compute(&Instruction { plan: Plan::General, ..it }, slow).expect("carried out");
        // What is no number may have any bits of it.
        for byte in (0..file::GENERAL).step_by(4) {
            let (a, b) = (quick.word(byte), slow.word(byte));
            let none = |bits: u32| f32::from_bits(bits).is_nan();
            assert!(a == b || kind == Type::F && none(a) && none(b), "{it}: {a:#x} {b:#x} at byte {byte}");
        }
        assert_eq!(quick.flags(), slow.flags(), "{it}");
    }
    assert!(fast_ones * 3 > count, "{fast_ones} of {count}");
}

#[test]
fn branches() {
    // Channels 0 to 3 take the first way, the others the second; then each leaves a loop at its own
    // time.
    let mut thread = Thread::new(0xff);
    let branch = |operation, jump| Instruction { jump, predicate: 1, ..instruction(operation, Type::UD, &[]) };
    let flags = |thread: &mut Thread, bits: u32| thread.set_word(file::FLAG, bits);
    flags(&mut thread, 0x0f);
    thread.branch(&branch(Operation::If, [3, 5])).expect("carried out");
    assert_eq!((thread.active, thread.next), (0x0f, 1));
    thread.next = 2;
    thread.branch(&Instruction { predicate: 0, ..branch(Operation::Else, [5, 5]) }).expect("carried out");
    assert_eq!((thread.active, thread.next), (0, 3));
    thread.join(3);
    assert_eq!(thread.active, 0xf0);
    thread.next = 5;
    thread.join(5);
    assert_eq!(thread.active, 0xff);
    // The loop from 6 to 8: channel 0 breaks, then the others stay twice.
    thread.next = 7;
    flags(&mut thread, 1);
    thread.branch(&branch(Operation::Break, [8, 9])).expect("carried out");
    assert_eq!((thread.active, thread.next), (0xfe, 8));
    flags(&mut thread, 0xf0);
    thread.branch(&branch(Operation::While, [6, 6])).expect("carried out");
    assert_eq!((thread.active, thread.next), (0xf0, 6));
    thread.next = 8;
    flags(&mut thread, 0);
    thread.branch(&branch(Operation::While, [6, 6])).expect("carried out");
    thread.join(9);
    assert_eq!((thread.active, thread.next, thread.waiting), (0xff, 9, 0));
}

/// A product of matrices of three rows and eight columns in `g10`, added to `g20`, with the left
/// factor in `g30` and the right one in `g40`.
fn product(to: Type, factors: Type) -> Instruction {
    let mut it = instruction(Operation::Dpas, to, &[register(20, to), register(40, factors), register(30, factors)]);
    it.message.function = 3;
    it
}

#[test]
fn products_of_matrices() {
    let float = |number: usize| number as f32 / 4.0 - 3.0;
    for (kind, bits) in [
        (Type::HF, (|value: f32| f16::from_f32(value).to_bits()) as fn(f32) -> u16),
        (Type::BF, |value| bf16::from_f32(value).to_bits()),
    ] {
        let mut thread = Thread::new(0xff);
        // 16 factors: a row of the left matrix follows another, pairs of rows of the right one do.
        let left = |row: usize, k: usize| float((5 * row + 3 * k) % 29);
        let right = |k: usize, column: usize| float((7 * k + 2 * column) % 23);
        let pair = |low: f32, high: f32| u32::from(bits(low)) | u32::from(bits(high)) << 16;
        for row in 0..3 {
            for step in 0..8 {
                thread.set_word(30 * 32 + 4 * (8 * row + step), pair(left(row, 2 * step), left(row, 2 * step + 1)));
            }
        }
        for step in 0..8 {
            for column in 0..8 {
                let word = pair(right(2 * step, column), right(2 * step + 1, column));
                thread.set_word(40 * 32 + 4 * (8 * step + column), word);
            }
        }
        (0..24).for_each(|k| thread.set_word(20 * 32 + 4 * k, float(k).to_bits()));
        compute(&product(Type::F, kind), &mut thread).expect("carried out");
        for row in 0..3 {
            for column in 0..8 {
                // Small enough to be exact in any order.
                let sum: f32 = (0..16).map(|k| left(row, k) * right(k, column)).sum();
                let found = f32::from_bits(thread.word(320 + 4 * (8 * row + column)));
                assert_eq!(found, float(8 * row + column) + sum, "{kind:?}: row {row}, column {column}");
            }
        }
    }
}

#[test]
fn products_of_matrices_of_bytes() {
    let mut thread = Thread::new(0xff);
    // -1 times 1 in all 32 places of the first row, then 127 times 127, then nothing.
    let rows = [[0xffff_ffff; 8], [0x7f7f_7f7f; 8], [0; 8]];
    for (k, word) in rows.as_flattened().iter().enumerate() {
        thread.set_word(30 * 32 + 4 * k, *word);
    }
    for k in 0..64 {
        thread.set_word(40 * 32 + 4 * k, if k % 8 == 0 { 0x7f7f_7f7f } else { 0x0101_0101 });
    }
    let mut it = product(Type::D, Type::B);
    it.source[0] = Source::NONE;
    compute(&it, &mut thread).expect("carried out");
    let at = |row: usize, column: usize| thread.word(320 + 4 * (8 * row + column)) as i32;
    assert_eq!([at(0, 1), at(0, 0), at(1, 1), at(1, 0), at(2, 0)], [-32, -32 * 127, 32 * 127, 32 * 127 * 127, 0]);
    // Clamped, where it is asked for.
    it.source[0] = register(20, Type::D);
    it.saturate = true;
    (0..24).for_each(|k| thread.set_word(20 * 32 + 4 * k, i32::MAX as u32));
    compute(&it, &mut thread).expect("carried out");
    assert_eq!(thread.word(320 + 32) as i32, i32::MAX);
}
