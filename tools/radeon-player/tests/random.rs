//! Random instructions carried out: each ends, or is a fault, and none panics.

#![cfg(target_os = "linux")]

use radeon_player::dispatch::Dispatch;
use radeon_player::execute::run_workgroup;
use radeon_player::isa::instruction::Encoding;
use radeon_player::isa::{Generation, Program, tables};
use radeon_player::memory::Memory;
use radeon_player::report::{Counts, Options};

const BUFFER: u64 = 0x8000_0000_0000;

/// The first word of an instruction with random operands.
fn word(generation: Generation, encoding: Encoding, number: u32, random: u32) -> u32 {
    let rdna4 = generation == Generation::Rdna4;
    match encoding {
        Encoding::Sop1 => 0x17d << 23 | number << 8 | random & 0x7f_00ff,
        Encoding::Sop2 => 2 << 30 | number << 23 | random & 0x7f_ffff,
        Encoding::Sopk => 0xb << 28 | number << 23 | random & 0x7f_ffff,
        Encoding::Sopc => 0x17e << 23 | number << 16 | random & 0xffff,
        Encoding::Sopp => 0x17f << 23 | number << 16 | random & 0xffff,
        Encoding::Smem if rdna4 => 0x3d << 26 | number << 13 | random & 0x1fff,
        Encoding::Smem => 0x3d << 26 | number << 18 | random & 0x3_ffff,
        Encoding::Vop1 => 0x3f << 25 | number << 9 | random & 0x1fe_01ff,
        Encoding::Vop2 => number << 25 | random & 0x1ff_ffff,
        Encoding::Vopc => 0x3e << 25 | number << 17 | random & 0x1_ffff,
        Encoding::Vop3 => 0x35 << 26 | number << 16 | random & 0xffff,
        Encoding::Vop3p => 0xcc << 24 | number << 16 | random & 0xffff,
        Encoding::Ds => 0x36 << 26 | number << 18 | random & 0xffff,
        Encoding::Mubuf if rdna4 => 0x31 << 26 | number << 14 | random & 0x7f,
        Encoding::Mubuf => 0x38 << 26 | number << 18 | random & 0x3_ffff,
        Encoding::Flat | Encoding::Scratch | Encoding::Global => {
            let segment = [Encoding::Flat, Encoding::Scratch, Encoding::Global].iter().position(|it| *it == encoding);
            let segment = segment.unwrap_or(0) as u32;
            match generation {
                Generation::Rdna4 => 0x3b << 26 | segment << 24 | number << 14 | random & 0x7f,
                Generation::Rdna3 => 0x37 << 26 | segment << 16 | number << 18 | random & 0x1fff,
                _ => 0x37 << 26 | segment << 14 | number << 18 | random & 0xfff,
            }
        }
        _ => random,
    }
}

#[test]
fn nothing_panics() {
    let memory = Memory::new();
    memory.map_anonymous(BUFFER, 1 << 16);
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    for generation in [Generation::Rdna1, Generation::Rdna2, Generation::Rdna3, Generation::Rdna4] {
        let end = if generation >= Generation::Rdna3 { 0xbfb0_0000 } else { 0xbf81_0000 };
        let mut rows: Vec<_> = tables::of(generation).iter().collect();
        rows.sort_by_key(|(key, _)| **key);
        let mut ended = 0;
        let mut panics = Vec::new();
        for (index, (&(encoding, number), row)) in rows.into_iter().enumerate() {
            for round in 0..16 {
                let first = word(generation, encoding, number.into(), random());
                // At times the last registers, and constants.
                let second = if round == 1 { u32::MAX } else { random() };
                let code = [first, second, random(), end, end, end];
                let Ok(program) = Program::decode(generation, &code, 0x1000) else { continue };
                if program.instructions.iter().any(|it| it.target != 0 && it.target <= 1) {
                    continue; // a loop without end
                }
                let wave = if round % 2 == 0 { 32 } else { 64 };
                let mut user = [0; 16].map(|_: u32| random());
                (user[0], user[1], user[2], user[3]) = (BUFFER as u32, (BUFFER >> 32) as u32, 1 << 12, 3 << 28);
                let dispatch = Dispatch {
                    generation,
                    number: 1,
                    code: 0x1000,
                    wave,
                    user,
                    rsrc1: random() & 0xff << 12 | 0x3f,
                    rsrc2: 16 << 1 | 4 << 15 | 1,
                    rsrc3: 0,
                    threads: [50, 1, 1],
                    groups: [1; 3],
                    start: [0; 3],
                    last: [50, 1, 1],
                    scratch: 256,
                };
                let strict = (index + round).is_multiple_of(5);
                let options = Options { threads: 1, strict, ..Options::default() };
                let outcome = std::panic::catch_unwind(|| {
                    run_workgroup(&program, &dispatch, [0; 3], &memory, &options, &mut Counts::default())
                });
                match outcome {
                    Ok(outcome) => ended += usize::from(outcome.is_ok()),
                    Err(_) => panics.push(format!("{} of {generation:?}: {code:08x?}", row.name)),
                }
            }
        }
        assert!(panics.is_empty(), "{panics:#?}");
        assert!(ended > 1500, "{generation:?}: {ended}");
    }
}
