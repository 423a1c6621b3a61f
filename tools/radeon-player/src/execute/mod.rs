//! Executes workgroups.
//!
//! Each instruction has a handler: a function that carries it out for all lanes of a wave. A family
//! of instructions is a file with a function `handler`, which finds the function by the assembler's
//! name: a missing instruction is a line there.

#[cfg(test)]
mod arithmetic_tests;
pub mod buffer;
pub mod control;
#[cfg(test)]
mod coverage_tests;
pub mod exact;
pub mod exchange;
pub mod float;
pub mod hardware;
pub mod local;
pub mod memory;
pub mod modifiers;
pub mod names;
pub mod registers;
pub mod relative;
pub mod run;
pub mod scalar;
pub mod scalar_float;
pub mod scalar_memory;
pub mod shared;
pub mod strict;
pub mod timeline;
pub mod traffic;
pub mod vector;
pub mod wave;

pub use run::Handlers;

use crate::dispatch::Dispatch;
use crate::fault::{Fault, FaultKind};
use crate::isa::Program;
use crate::isa::instruction::Instruction;
use crate::memory::Memory;
use crate::report::{Counts, Options};
use wave::Wave;

/// What the waves of a workgroup share.
pub struct Group<'a> {
    /// The launch.
    pub dispatch: &'a Dispatch,
    /// The GPU's memory.
    pub memory: &'a Memory,
    /// How to play.
    pub options: &'a Options,
    /// What is counted.
    pub counts: &'a mut Counts,
    /// The workgroup's numbers.
    pub id: [u32; 3],
    /// Shared memory.
    pub shared: local::Shared,
    /// Scratch memory of all lanes of the workgroup: that of a lane is contiguous.
    pub scratch: Vec<u8>,
    /// What of it is measured in full: only of some workgroups, since it takes time.
    pub sample: Option<Box<traffic::Sample>>,
}

/// What stops an instruction.
#[derive(Debug)]
pub struct Trap {
    /// What went wrong.
    pub kind: FaultKind,
    /// The lane at fault.
    pub lane: Option<u32>,
    /// The memory that it was for.
    pub address: Option<u64>,
}

impl Trap {
    /// For a handler to return.
    #[must_use]
    pub fn new(kind: FaultKind) -> Box<Self> {
        Box::new(Self { kind, lane: None, address: None })
    }

    /// For a handler of memory to return.
    #[must_use]
    pub fn at(kind: FaultKind, lane: usize, address: u64) -> Box<Self> {
        Box::new(Self { kind, lane: Some(lane as u32), address: Some(address) })
    }
}

/// What a handler returns.
pub type Outcome = Result<(), Box<Trap>>;

/// Carries out an instruction for a wave.
pub type Handler<const N: usize> = fn(&mut Wave<N>, &Instruction, &mut Group) -> Outcome;

/// Who carries out an instruction, by the name that it has on RDNA3 or its own.
fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    let families = [
        vector::handler::<N>,
        scalar::handler::<N>,
        scalar_float::handler::<N>,
        memory::handler::<N>,
        buffer::handler::<N>,
        shared::handler::<N>,
        scalar_memory::handler::<N>,
        control::handler::<N>,
        exchange::handler::<N>,
        relative::handler::<N>,
        hardware::handler::<N>,
    ];
    let find = |name: &str| families.iter().find_map(|family| family(name));
    find(name).or_else(|| find(&names::of_rdna3(name)))
}

/// The same where MODE may ask for other roundings than to the nearest.
fn rounding_handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    let find = |name: &str| vector::directed::handler(name).or_else(|| scalar_float::rounding_handler(name));
    find(name).or_else(|| find(&names::of_rdna3(name))).or_else(|| handler(name))
}

/// Runs one workgroup to its end.
///
/// # Errors
///
/// The first fault of the workgroup.
pub fn run_workgroup(
    program: &Program,
    dispatch: &Dispatch,
    id: [u32; 3],
    memory: &Memory,
    options: &Options,
    counts: &mut Counts,
) -> Result<(), Fault> {
    let shared = local::Shared::new(dispatch.shared() as usize, options.strict);
    let lanes = dispatch.waves() as usize * dispatch.wave as usize;
    let scratch = vec![0xa5; lanes * dispatch.scratch as usize];
    vector::set_side(options.approximate);
    let sample = (options.count && dispatch.is_sampled(id)).then(Box::default);
    let mut group = Group { dispatch, memory, options, counts, id, shared, scratch, sample };
    let outcome =
        if dispatch.wave == 32 { run::run::<32>(program, &mut group) } else { run::run::<64>(program, &mut group) };
    if let Some(sample) = group.sample.take() {
        group.counts.add_sample(&sample);
    }
    outcome.map_err(|fault| *fault)
}
