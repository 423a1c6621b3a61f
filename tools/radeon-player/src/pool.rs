//! A launch, as the threads run it.

use std::sync::Arc;

use crate::dispatch::Dispatch;
use crate::execute::run_workgroup;
use crate::fault::Fault;
use crate::isa::Program;
use crate::memory::Memory;
use crate::report::{Counts, Options};

/// A launch.
pub struct Launch {
    /// Its code.
    pub program: Arc<Program>,
    /// Its registers and size.
    pub dispatch: Dispatch,
    /// What it works on.
    pub memory: Arc<Memory>,
    /// How it is watched.
    pub options: Arc<Options>,
}

impl gpu_player::pool::Launch for Launch {
    type Counts = Counts;
    type Fault = Fault;

    fn group_count(&self) -> u64 {
        self.dispatch.group_count()
    }

    fn run(&self, number: u64, counts: &mut Counts) -> Result<(), Fault> {
        let id = self.dispatch.group(number);
        run_workgroup(&self.program, &self.dispatch, id, &self.memory, &self.options, counts).map_err(|mut fault| {
            fault.workgroup = id;
            fault
        })
    }

    fn add(counts: &mut Counts, other: &Counts) {
        counts.add(other);
    }
}

/// Threads that wait for launches.
pub type Pool = gpu_player::pool::Pool<Launch>;
/// A launch in work.
pub type Job = gpu_player::pool::Job<Launch>;
