//! Machine code of an Intel GPU's execution units.

pub mod bits;
mod compaction;
mod compaction_9;
pub mod decode;
mod decode_9;
pub mod file;
pub mod instruction;
mod systolic;

use crate::fault::{Fault, FaultKind};
use instruction::{Instruction, Operation};

pub use decode::sources;
pub use systolic::DEPTH;

/// Whose machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The 9th (Gen9): Skylake to Comet Lake.
    Nine,
    /// Xe of the 12th generation without its later extensions (Gen12.0): Iris Xe.
    Xe,
    /// Xe of Arc's first cards (Gen12.5).
    XeHpg,
}

/// A kernel, decoded.
#[derive(Clone, Debug)]
pub struct Program {
    /// Whose it is.
    pub generation: Generation,
    /// Its instructions, in the order of their addresses.
    pub instructions: Vec<Instruction>,
    /// Its code, in words.
    code: Vec<u32>,
}

impl Program {
    /// Decodes a kernel from its first word to the end of the thread that nothing branches beyond.
    ///
    /// # Errors
    ///
    /// An encoding that does not exist or is missing here.
    pub fn decode(generation: Generation, code: &[u32], address: u64) -> Result<Self, Fault> {
        let fault = |at: usize, kind| Fault::new(kind, "", address + 4 * at as u64);
        let (mut instructions, mut at, mut furthest) = (Vec::<Instruction>::new(), 0usize, 0u32);
        loop {
            let Some(words) = code.get(at..at + 2) else {
                return Err(fault(at, FaultKind::Other("code goes on outside all buffers".into())));
            };
            // Bit 29 says that an instruction is compacted.
            let length = if words[0] >> 29 & 1 != 0 { 2 } else { 4 };
            let Some(words) = code.get(at..at + length) else {
                return Err(fault(at, FaultKind::Other("code goes on outside all buffers".into())));
            };
            let found = decode::decode(generation, words, 4 * at as u32)
                .map_err(|why| fault(at, FaultKind::Undecodable(words.to_vec(), why)))?;
            // Of channels of both flags: the execution does not have them.
            if matches!(found.predicate, 2 | 3 | 14 | 15) {
                let why = format!("predicate {}", found.predicate);
                return Err(fault(at, FaultKind::Undecodable(words.to_vec(), why)));
            }
            at += length;
            for target in found.jump.iter().filter(|_| decode::branches(found.operation)) {
                furthest = furthest.max(*target);
            }
            let end = found.message.end;
            instructions.push(found);
            if end && furthest < 4 * at as u32 {
                break;
            }
        }
        let number = |byte: u32| instructions.binary_search_by_key(&byte, |it| it.at).ok();
        let mut targets = Vec::new();
        let mut jumps = Vec::new();
        for (at, it) in instructions.iter().enumerate() {
            let mut jump = [0; 2];
            // Channels that leave a loop wait behind it for those that stay.
            if it.operation == Operation::While {
                targets.push(at + 1);
            }
            if decode::branches(it.operation) {
                for (k, byte) in it.jump.iter().enumerate().take(decode::jumps(it.operation)) {
                    let Some(target) = number(*byte) else {
                        let kind = FaultKind::Other("a branch leads into an instruction".into());
                        return Err(fault(it.at as usize / 4, kind));
                    };
                    jump[k] = target as u32;
                    targets.push(target);
                }
                // The end of a loop that a channel has left leads to what follows it.
                if it.operation == Operation::Break && instructions[jump[1] as usize].operation == Operation::While {
                    jump[1] += 1;
                    targets.push(jump[1] as usize);
                }
            }
            jumps.push(jump);
        }
        for (it, jump) in instructions.iter_mut().zip(jumps) {
            it.jump = jump;
        }
        for target in targets {
            if let Some(it) = instructions.get_mut(target) {
                it.is_target = true;
            }
        }
        Ok(Self { generation, instructions, code: code[..at].to_vec() })
    }

    /// Its code, in words.
    #[must_use]
    pub fn code(&self) -> &[u32] {
        &self.code
    }
}
