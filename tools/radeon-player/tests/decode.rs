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
