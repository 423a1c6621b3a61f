//! Executes workgroups.
//!
//! [`thread`] has the registers of a thread, [`region`] reads operands out of them and writes
//! results, [`fast`], [`integer`] and [`float`] compute, [`control`] keeps which channels are on,
//! and [`message`] and [`load_store`] are what threads send
//! to memory and to each other. [`run`] puts them together.

#[cfg(test)]
mod arithmetic_tests;
pub mod control;
pub mod fast;
pub mod float;
pub mod integer;
pub mod load_store;
pub mod message;
#[cfg(test)]
mod message_tests;
pub mod region;
pub mod run;
#[cfg(test)]
mod run_tests;
pub mod surface;
pub mod systolic;
pub mod thread;

pub use run::run_workgroup;

use crate::dispatch::Dispatch;
use crate::fault::FaultKind;
use crate::memory::Memory;

/// What the threads of a workgroup share.
pub struct Group<'a> {
    /// The launch.
    pub dispatch: &'a Dispatch,
    /// The GPU's memory.
    pub memory: &'a Memory,
    /// Shared memory.
    pub shared: Vec<u8>,
    /// Scratch of all threads, that of the first first.
    pub scratch: Vec<u8>,
}

/// What stops an instruction.
#[derive(Debug)]
pub struct Trap {
    /// What went wrong.
    pub kind: FaultKind,
    /// The channel at fault.
    pub channel: Option<u32>,
    /// The memory that it was for.
    pub address: Option<u64>,
}

impl Trap {
    /// For an instruction to return.
    #[must_use]
    pub fn new(kind: FaultKind) -> Box<Self> {
        Box::new(Self { kind, channel: None, address: None })
    }

    /// For what is missing here.
    #[must_use]
    pub fn missing(what: impl Into<String>) -> Box<Self> {
        Self::new(FaultKind::Missing(what.into()))
    }

    /// For an access to memory.
    #[must_use]
    pub fn at(kind: FaultKind, channel: usize, address: u64) -> Box<Self> {
        Box::new(Self { kind, channel: Some(channel as u32), address: Some(address) })
    }
}

/// What an instruction returns.
pub type Outcome<T = ()> = Result<T, Box<Trap>>;

/// A value for each channel.
pub type Row<T> = [T; 32];
