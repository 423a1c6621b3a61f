//! The decoder against Mesa's disassembler: `tests/decode/*.txt` has instructions of kernels of
//! this project as words, and what `INTEL_DEBUG=cs,hex` prints of them, in the player's spelling.

#![cfg(target_os = "linux")]

use intel_player::isa::Generation;
use intel_player::isa::decode::{branches, decode};
use intel_player::isa::instruction::Operation;

fn check(text: &str, generation: Generation) {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in text.lines() {
        let (words, expected) = line.split_once(" | ").expect("words and text");
        let words: Vec<u32> =
            words.split(' ').map(|word| u32::from_str_radix(word, 16).expect("a hexadecimal number")).collect();
        let found = match decode(generation, &words, 0) {
            Err(why) => why,
            Ok(it) => {
                let text = it.to_string();
                // Where branches lead to has names there.
                let text = if branches(it.operation) {
                    text.split(" JIP").next().unwrap_or_default().to_owned()
                } else {
                    text
                };
                let all = if it.all { " all" } else { "" };
                if it.operation == Operation::Nop { text } else { format!("{text} @{}{all}", it.first) }
            }
        };
        if found != expected {
            wrong.push(format!("{words:08x?}\n  expected {expected}\n  found    {found}"));
        }
        count += 1;
    }
    assert!(count > 400, "{count} lines");
    assert!(wrong.is_empty(), "{} of {count} lines:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// The lines of a file that the environment names, or those that are kept.
fn lines(variable: &str, kept: &str) -> String {
    std::env::var(variable).map_or(kept.into(), |path| std::fs::read_to_string(path).expect("a file"))
}

#[test]
fn xe() {
    check(&lines("DECODE_XE", include_str!("decode/xe.txt")), Generation::Xe);
}

#[test]
fn nine() {
    check(&lines("DECODE_NINE", include_str!("decode/nine.txt")), Generation::Nine);
}

#[test]
fn hpg() {
    check(&lines("DECODE_HPG", include_str!("decode/hpg.txt")), Generation::XeHpg);
}
