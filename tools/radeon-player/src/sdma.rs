//! The packets of the DMA engines: copies, fills and times beside the shaders.
//!
//! They become the same commands as those of [`pm4`](crate::pm4).

use crate::memory::Memory;
use crate::pm4::{Command, Source, Target, Unreadable};

const NOP: u32 = 0;
const COPY: u32 = 1;
const WRITE: u32 = 2;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
const POLL: u32 = 8;
const FILL: u32 = 11;
const TIMESTAMP: u32 = 13;
const CACHES: u32 = 17;

/// The commands of `words` words at an address.
///
/// # Errors
///
/// What is no packet, and what lies outside all buffers.
pub fn read(memory: &Memory, address: u64, words: u32) -> Result<Vec<Command>, Unreadable> {
    let mut bytes = vec![0; words as usize * 4];
    if !memory.read(address, &mut bytes) {
        return Err(Unreadable::Outside(address));
    }
    let code: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (mut at, mut commands) = (0, Vec::new());
    while at < code.len() {
        let rest = &code[at..];
        let short = Unreadable::Packet { address: address + at as u64 * 4, word: rest[0] };
        let size = size(rest);
        let packet = rest.get(..size).ok_or(short)?;
        commands.extend(command(packet));
        at += size;
    }
    Ok(commands)
}

/// Words of the packet that code begins with.
fn size(code: &[u32]) -> usize {
    let header = code[0];
    match header & 255 {
        NOP => 1 + (header >> 16 & 0x3fff) as usize,
        COPY => 7,
        WRITE => 5 + code.get(3).map_or(0, |count| (count & 0xf_ffff) as usize),
        FENCE => 4,
        TRAP => 2,
        POLL => 6,
        FILL | CACHES => 5,
        TIMESTAMP => 3,
        _ => 1,
    }
}

fn command(packet: &[u32]) -> Option<Command> {
    // The packet is as long as `size` says; what is missing would be zero.
    let word = |k: usize| packet.get(k).copied().unwrap_or(0);
    let wide = |k: usize| u64::from(word(k)) | u64::from(word(k + 1)) << 32;
    let (operation, kind) = (word(0) & 255, word(0) >> 8 & 255);
    Some(match (operation, kind) {
        (NOP | TRAP | CACHES, _) => return None,
        (POLL, _) => Command::Barrier,
        (COPY, 0) => Command::Copy { from: wide(3), to: wide(5), bytes: (word(1) & 0x3fff_ffff) + 1 },
        (WRITE, 0) => Command::Write { to: wide(1), values: packet[4..].to_vec(), advance: true },
        (FENCE, _) => {
            let (from, to) = (Source::Value(word(3).into()), Target::Memory(wide(1)));
            Command::CopyValue { from, to, wide: false }
        }
        // Whole words.
        (FILL, _) if word(0) >> 30 == 2 => {
            Command::Fill { to: wide(1), value: word(3), bytes: ((word(4) & 0x3fff_ffff) + 1) & !3 }
        }
        (TIMESTAMP, 2) => Command::CopyValue { from: Source::Clock, to: Target::Memory(wide(1)), wide: true },
        _ => Command::Unknown { operation: operation | kind << 8, name: Some("of the DMA engine") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_become_commands() {
        let memory = Memory::new();
        memory.map_anonymous(0x10_0000, 4096);
        let code: [u32; 27] = [
            NOP | 2 << 16,
            7,
            7, // with two words that say nothing
            COPY,
            15,
            0,
            0x1000,
            1,
            0x2000,
            2, // 16 bytes
            FILL | 2 << 30,
            0x3000,
            0,
            9,
            63, // 64 bytes
            FENCE,
            0x4000,
            0,
            5, // a value
            WRITE,
            0x5000,
            0,
            1,
            8,
            9, // two words
            TRAP,
            0,
        ];
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(memory.write(0x10_0000, &bytes));
        let expected = [
            Command::Copy { from: 0x1_0000_1000, to: 0x2_0000_2000, bytes: 16 },
            Command::Fill { to: 0x3000, value: 9, bytes: 64 },
            Command::CopyValue { from: Source::Value(5), to: Target::Memory(0x4000), wide: false },
            Command::Write { to: 0x5000, values: vec![8, 9], advance: true },
        ];
        assert_eq!(read(&memory, 0x10_0000, 27).expect("packets"), expected);
        // Cut off in the copy.
        assert!(matches!(read(&memory, 0x10_0000, 6), Err(Unreadable::Packet { address: 0x10_000c, .. })));
        let unknown = command(&[COPY | 4 << 8, 0, 0, 0, 0, 0, 0]);
        assert!(matches!(unknown, Some(Command::Unknown { operation: 0x401, .. })));
    }
}
