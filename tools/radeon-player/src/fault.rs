//! What a launch can do wrong, and where it did.

use std::fmt;
use thiserror::Error;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// The decoder has no such encoding.
    #[error("no such encoding: {0:08x?}")]
    Undecodable(Vec<u32>),
    /// The instruction is decoded, but not carried out by this player.
    #[error("the player lacks this instruction")]
    Missing,
    /// An access outside all buffers.
    #[error("{bytes} bytes {} outside all buffers", if *.write { "written" } else { "read" })]
    OutOfBounds {
        /// Size of the access.
        bytes: u32,
        /// Whether it writes.
        write: bool,
    },
    /// An access to shared memory beyond what the launch asked for.
    #[error("shared memory at {offset}, of {size} bytes")]
    SharedOutOfBounds {
        /// First byte of the access.
        offset: u32,
        /// Bytes that the launch has.
        size: u32,
    },
    /// A register that is read before anything was written to it.
    #[error("{0} is read before it is written")]
    UnwrittenRegister(String),
    /// Shared memory that is read before anything was written to it.
    #[error("shared memory at {0} is read before it is written")]
    UnwrittenShared(u32),
    /// A register that a load is still to fill, used before the wait for it.
    #[error("{0} is used before its load is waited for")]
    MissingWait(String),
    /// Two waves touch a word of shared memory between two barriers, and one of them writes.
    #[error("waves {} and {} touch shared memory at {offset} without a barrier between, and one writes", .waves[0], .waves[1])]
    SharedRace {
        /// First byte of the word.
        offset: u32,
        /// The two waves, in the order of their accesses.
        waves: [u32; 2],
    },
    /// Two launches touch a word of memory without a barrier between them, and one of them writes.
    #[error("{} what launch {earlier} {} without a barrier between", if *.write { "writes" } else { "reads" }, if *.wrote { "wrote" } else { "read" })]
    LaunchRace {
        /// The launch that came before, by its number.
        earlier: u32,
        /// Whether that one wrote.
        wrote: bool,
        /// Whether this one writes.
        write: bool,
    },
    /// More instructions of a wave than the options allow.
    #[error("the wave does not end: more than {0} instructions (RADEON_PLAYER_INSTRUCTIONS)")]
    Endless(u64),
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
}

/// Where and how a launch went wrong. Fields that nobody knows stay empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The instruction as text, empty if it could not be decoded.
    pub instruction: String,
    /// Address of the instruction in the GPU's address space.
    pub code: u64,
    /// Lane of the wave, if one alone is at fault.
    pub lane: Option<u32>,
    /// Address of the memory that the access was for.
    pub address: Option<u64>,
    /// Wave of the workgroup.
    pub wave: u32,
    /// The workgroup.
    pub workgroup: [u32; 3],
}

impl Fault {
    /// A fault of which only kind, instruction and its address are known; the executor adds wave
    /// and workgroup.
    pub fn new(kind: FaultKind, instruction: impl Into<String>, code: u64) -> Self {
        Self { kind, instruction: instruction.into(), code, lane: None, address: None, wave: 0, workgroup: [0; 3] }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", if self.instruction.is_empty() { "code" } else { &self.instruction }, self.code)?;
        let [x, y, z] = self.workgroup;
        write!(f, ", workgroup {x} {y} {z}, wave {}", self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, ", lane {lane}")?;
        }
        if let Some(address) = self.address {
            write!(f, ", memory {address:#x}")?;
        }
        write!(f, ": {}", self.kind)
    }
}
