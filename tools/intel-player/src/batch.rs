//! Commands of a batch: what they are and how long. [`crate::queue`] carries them out.

use crate::memory::Memory;

/// What a command is, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names that Intel's manuals have
pub enum Kind {
    /// Does nothing that is seen here: state of graphics, hints, workarounds.
    Nothing,
    BatchEnd,
    BatchStart,
    SetPredicate,
    StoreValue,
    LoadRegisterValue,
    StoreRegister,
    LoadRegister,
    CopyRegister,
    CopyMemory,
    Math,
    SemaphoreWait,
    FlushWord,
    PipeControl,
    StateBaseAddress,
    VfeState,
    CurbeLoad,
    DescriptorLoad,
    Walker,
    CfeState,
    ComputeWalker,
    TablePool,
    /// Missing here.
    Unknown,
}

/// A command.
#[derive(Clone, Debug)]
pub struct Command {
    /// What it is.
    pub kind: Kind,
    /// Its words.
    pub words: Vec<u32>,
}

impl Command {
    /// An address that starts at a word.
    #[must_use]
    pub fn address(&self, at: usize) -> u64 {
        (u64::from(self.word(at)) | u64::from(self.word(at + 1)) << 32) & 0xffff_ffff_ffff
    }

    /// A word; 0 beyond the end, where shorter forms of a command leave it out.
    #[must_use]
    pub fn word(&self, at: usize) -> u32 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Bits of a word.
    #[must_use]
    pub fn bits(&self, at: usize, last: u32, first: u32) -> u32 {
        self.word(at) >> first & (u32::MAX >> (31 - (last - first)))
    }
}

/// What a command is and how many words it has.
fn kind(first: u32) -> (Kind, usize) {
    let length = (first & 0xff) as usize + 2;
    match first >> 29 {
        0 => {
            let number = first >> 23 & 63;
            let kind = match number {
                // NOOP, USER_INTERRUPT, WAIT_FOR_EVENT, ARB_CHECK, ARB_ON_OFF, SUSPEND_FLUSH,
                // TOPOLOGY_FILTER
                0x00 | 0x02 | 0x03 | 0x05 | 0x08 | 0x0b | 0x0d => Kind::Nothing,
                0x01 => Kind::SetPredicate,
                0x0a => Kind::BatchEnd,
                0x1a => Kind::Math,
                0x1c => Kind::SemaphoreWait,
                0x20 => Kind::StoreValue,
                0x22 => Kind::LoadRegisterValue,
                0x24 => Kind::StoreRegister,
                0x26 => Kind::FlushWord,
                0x29 => Kind::LoadRegister,
                0x2a => Kind::CopyRegister,
                0x2e => Kind::CopyMemory,
                0x31 => Kind::BatchStart,
                _ => Kind::Unknown,
            };
            let length = match number {
                0..0x10 => 1,
                0x26 => (first & 63) as usize + 2,
                0x20 => (first & 0x3ff) as usize + 2,
                _ => length,
            };
            (kind, length)
        }
        3 => match first >> 16 & 0x1fff {
            0x0101 => (Kind::StateBaseAddress, length),
            0x1000 => (Kind::VfeState, length),
            0x1001 => (Kind::CurbeLoad, length),
            0x1002 => (Kind::DescriptorLoad, length),
            0x1004 => (Kind::Nothing, length),
            0x1105 => (Kind::Walker, length),
            0x1200 => (Kind::CfeState, length),
            0x1208 => (Kind::ComputeWalker, length),
            0x1919 => (Kind::TablePool, length),
            0x1a00 => (Kind::PipeControl, length),
            // PIPELINE_SELECT, 3DSTATE_VF_STATISTICS
            0x0904 | 0x080b => (Kind::Nothing, 1),
            // 3DPRIMITIVE
            0x1b00..=0x1bff => (Kind::Unknown, length),
            // 3DSTATE and what is common to all pipelines
            0x0000..=0x0fff | 0x1800..=0x19ff => (Kind::Nothing, length),
            _ => (Kind::Unknown, length),
        },
        _ => (Kind::Unknown, length),
    }
}

/// Reads the command at an address; none where no buffer is.
#[must_use]
pub fn read(memory: &Memory, address: u64) -> Option<Command> {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        memory.read(address + 4 * at as u64, &mut bytes).then_some(u32::from_le_bytes(bytes))
    };
    let first = word(0)?;
    let (kind, length) = kind(first);
    let mut words = vec![first];
    for at in 1..length {
        words.push(word(at)?);
    }
    Some(Command { kind, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_lengths() {
        for (first, expected) in [
            (0, (Kind::Nothing, 1)),
            (0x0500_0000, (Kind::BatchEnd, 1)),
            (0x1880_0101, (Kind::BatchStart, 3)),
            (0x1000_0002, (Kind::StoreValue, 4)),
            (0x6101_0014, (Kind::StateBaseAddress, 22)),
            (0x6904_0002, (Kind::Nothing, 1)),
            (0x7000_0007, (Kind::VfeState, 9)),
            (0x7105_000d, (Kind::Walker, 15)),
            (0x7a00_0004, (Kind::PipeControl, 6)),
            (0x7b00_0005, (Kind::Unknown, 7)),
        ] {
            assert_eq!(kind(first), expected, "{first:#x}");
        }
    }
}
