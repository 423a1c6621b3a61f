//! Executes workgroups.

use crate::dispatch::Dispatch;
use crate::fault::Fault;
use crate::isa::Program;
use crate::memory::Memory;
use crate::report::{Counts, Options};

/// Runs one workgroup to its end.
///
/// # Errors
///
/// The first fault of the workgroup.
pub fn run_workgroup(
    _program: &Program,
    _dispatch: &Dispatch,
    _id: [u32; 3],
    _memory: &Memory,
    _options: &Options,
    _counts: &mut Counts,
) -> Result<(), Fault> {
    Ok(())
}
