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

#[test]
fn xe() {
    let other = std::env::var("DECODE_LINES").ok().map(|path| std::fs::read_to_string(path).expect("a file"));
    check(other.as_deref().unwrap_or(include_str!("decode/xe.txt")), Generation::Xe);
}
