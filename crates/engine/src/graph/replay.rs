//! A graph and its replays.

use crate::capture::draws::Draws;
use crate::commands::replay::Replay;
use crate::error::Error;
use crate::fork;
use crate::graph::pool::{GraphMemory, GraphPool};
use crate::graph::random;
use crate::graph::report;
use crate::kernels::kernel::KernelRef;
use crate::queue::device_queue::State;
use crate::transfer::upload::Uploads;
use std::sync::Arc;

/// Captured work of one device.
pub struct Graph {
    /// The recordings that a replay submits one after the other. A graph without commands has none.
    pub(crate) replays: Vec<Arc<Replay>>,
    pub(crate) stats: GraphStats,
    pub(crate) draws: Draws,
    /// The kernel that passes the index errors of a replay to the thread that replayed, if there
    /// can be any.
    pub(crate) report: Option<KernelRef>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) memory: GraphMemory,
}

/// The size of a graph.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// Launches and copies that were captured.
    pub captured: u32,
    /// Launches and copies of a replay. Pointwise launches that follow one another are fused, and
    /// long launches are split.
    pub launches: u32,
    /// Barriers of a replay, the one at its beginning included.
    pub barriers: u32,
    /// Barriers that the launches would need in the order of their capture.
    pub barriers_in_order: u32,
}

impl Graph {
    /// Enqueues the captured work, after everything enqueued before.
    ///
    /// # Errors
    /// [`Error::Graph`] while the calling thread captures a graph of the device;
    /// [`Error::DeviceLost`]; an error of earlier work.
    pub fn replay(&self) -> Result<(), Error> {
        fork::check()?;
        let queue = &*self.memory.queue;
        queue.submission.alive()?;
        queue.refuse_in_capture("a replay of another graph")?;
        queue.check_faults()?;
        if self.replays.is_empty() {
            return Ok(());
        }
        queue.throttle_or_interrupt()?;
        let mut state = queue.lock();
        queue.submission.take_deferred()?;
        self.draw(&mut state)?;
        queue.replay_locked(&mut state, &self.replays)?;
        self.report.as_ref().map_or(Ok(()), |kernel| report::move_report(queue, &mut state, kernel))
    }

    /// The size of the graph.
    pub fn stats(&self) -> GraphStats {
        self.stats
    }

    /// The pool that the graph's memory belongs to.
    pub fn pool(&self) -> &Arc<GraphPool> {
        &self.memory.pool
    }

    /// Reserves the random numbers of this replay, and uploads the seeds and counters to where the
    /// kernels read them.
    fn draw(&self, state: &mut State) -> Result<(), Error> {
        if self.draws.is_empty() {
            return Ok(());
        }
        self.uploads.upload_small(state, self.memory.random, &random::stored(&self.draws))
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("stats", &self.stats).field("pool", &self.memory.pool).finish_non_exhaustive()
    }
}
