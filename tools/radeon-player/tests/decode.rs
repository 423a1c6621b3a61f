//! The decoder against words whose meaning LLVM's disassembler agrees on: `decode/` has, for each
//! generation, a line for most instructions, with random registers, constants and modifiers.

#![cfg(target_os = "linux")]

use radeon_player::isa::{Generation, Program};

fn check(generation: Generation, texts: &str) {
    let mut count = 0;
    for line in texts.lines() {
        let (words, text) = line.split_once(": ").expect("words and text");
        let mut code: Vec<u32> = words.split(' ').map(|word| u32::from_str_radix(word, 16).expect("a word")).collect();
        let size = code.len() * 4;
        // The end of a program, which has another number in each generation, far enough for
        // branches.
        let end = if generation >= Generation::Rdna3 { 0xbfb0_0000 } else { 0xbf81_0000 };
        code.resize(code.len() + 0x800, end);
        let program = Program::decode(generation, &code, 0).expect("a program");
        let first = &program.instructions[0];
        assert_eq!((first.to_string().as_str(), usize::from(first.size)), (text, size), "{words}");
        count += 1;
    }
    assert!(count > 800, "{count} lines");
}

#[test]
fn words_of_rdna1() {
    check(Generation::Rdna1, include_str!("decode/rdna1.txt"));
}

#[test]
fn words_of_rdna2() {
    check(Generation::Rdna2, include_str!("decode/rdna2.txt"));
}

#[test]
fn words_of_rdna3() {
    check(Generation::Rdna3, include_str!("decode/rdna3.txt"));
}

#[test]
fn words_of_rdna4() {
    check(Generation::Rdna4, include_str!("decode/rdna4.txt"));
}

/// Words that nobody wrote: each becomes an instruction or none, in words that the decoder was
/// given.
#[test]
fn random_words_are_decoded_or_not() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    // The first bits of each family, so that all are met as often.
    let families = [
        0x0000_0000,
        0x7c00_0000,
        0x7e00_0000,
        0x8000_0000,
        0xb000_0000,
        0xbe80_0000,
        0xbf00_0000,
        0xbf80_0000,
        0xc400_0000,
        0xc800_0000,
        0xcc00_0000,
        0xd400_0000,
        0xd800_0000,
        0xdc00_0000,
        0xe000_0000,
        0xec00_0000,
        0xf400_0000,
    ];
    for generation in [Generation::Rdna1, Generation::Rdna2, Generation::Rdna3, Generation::Rdna4] {
        let end = if generation >= Generation::Rdna3 { 0xbfb0_0000 } else { 0xbf81_0000 };
        let mut decoded = 0;
        for count in 0..60_000usize {
            let first = match families.get(count % 20) {
                Some(family) => family | random() & 0x03ff_ffff,
                None => random(),
            };
            let words = [first, random(), random()];
            let code = [&words[..1 + count % 3], &[end; 3]].concat();
            // A branch beyond the end is a fault of the shader.
            let Ok(program) = Program::decode(generation, &code, 0x1000) else { continue };
            let mut at = 0;
            for instruction in &program.instructions {
                assert_eq!(instruction.at, at, "{words:08x?}");
                assert!(matches!(instruction.size, 4 | 8 | 12), "{words:08x?}: {instruction}");
                at += u32::from(instruction.size);
                decoded += usize::from(instruction.name != "undecodable");
            }
            assert!(at as usize <= code.len() * 4, "{words:08x?} reach beyond the code");
        }
        assert!(decoded > 60_000, "{generation:?}: {decoded}");
    }
}
