//! What a launch can do wrong, and where it did.

use std::fmt;
use thiserror::Error;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// The decoder has no such encoding.
    #[error("no such encoding: {0:08x?}: {1}")]
    Undecodable(Vec<u32>, String),
    /// The instruction is decoded, but not carried out by this player.
    #[error("the player lacks {0}")]
    Missing(String),
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
    /// More instructions of a thread than the options allow.
    #[error("the thread does not end: more than {0} instructions (INTEL_PLAYER_INSTRUCTIONS)")]
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
    /// Channel of the thread, if one alone is at fault.
    pub channel: Option<u32>,
    /// Address of the memory that the access was for.
    pub address: Option<u64>,
    /// Thread of the workgroup.
    pub thread: u32,
    /// The workgroup.
    pub workgroup: [u32; 3],
}

impl Fault {
    /// A fault of which only kind, instruction and its address are known; the executor adds thread
    /// and workgroup.
    pub fn new(kind: FaultKind, instruction: impl Into<String>, code: u64) -> Self {
        let (channel, address, thread, workgroup) = (None, None, 0, [0; 3]);
        Self { kind, instruction: instruction.into(), code, channel, address, thread, workgroup }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}", if self.instruction.is_empty() { "code" } else { &self.instruction }, self.code)?;
        let [x, y, z] = self.workgroup;
        write!(f, ", workgroup {x} {y} {z}, thread {}", self.thread)?;
        if let Some(channel) = self.channel {
            write!(f, ", channel {channel}")?;
        }
        if let Some(address) = self.address {
            write!(f, ", memory {address:#x}")?;
        }
        write!(f, ": {}", self.kind)
    }
}
