//! A graph, and its runs.

use crate::capture::draws::Draws;
use crate::error::Error;
use crate::fork;
use crate::graph::pool::{GraphPool, Held};
use crate::graph::random;
use crate::graph::report;
use crate::kernels::kernel::KernelRef;
use crate::queue::device_queue::State;
use crate::submit::batch::Replay;
use crate::transfer::upload::Uploads;
use std::sync::Arc;

/// Captured work of one device.
pub struct Graph {
    /// What is submitted one after the other: nothing, for a graph without commands.
    pub(crate) replays: Vec<Arc<Replay>>,
    pub(crate) stats: GraphStats,
    pub(crate) draws: Draws,
    /// Hands the index errors of a replay to the thread whose it is, if there can be any.
    pub(crate) report: Option<KernelRef>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) held: Held,
}

/// What a graph consists of.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// Launches and copies that were captured.
    pub captured: u32,
    /// Launches and copies of a replay: pointwise ones that follow one another are fused, and long
    /// ones are cut.
    pub launches: u32,
    /// Barriers of a replay, the one before it included.
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
        let queue = &*self.held.queue;
        queue.submission.alive()?;
        queue.refuse_in_capture("a replay of another graph")?;
        queue.check_faults()?;
        if self.replays.is_empty() {
            return Ok(());
        }
        queue.await_room_to_replay()?;
        let mut state = queue.lock();
        queue.submission.take_deferred()?;
        self.draw(&mut state)?;
        queue.replay(&mut state, &self.replays)?;
        self.report.as_ref().map_or(Ok(()), |kernel| report::move_report(queue, &mut state, kernel))
    }

    /// What the graph consists of.
    pub fn stats(&self) -> GraphStats {
        self.stats
    }

    /// The pool that the graph's memory is of.
    pub fn pool(&self) -> &Arc<GraphPool> {
        &self.held.pool
    }

    /// Reserves the numbers of this replay, and has their seeds and offsets written where the
    /// kernels read them.
    fn draw(&self, state: &mut State) -> Result<(), Error> {
        if self.draws.is_empty() {
            return Ok(());
        }
        self.uploads.upload_small(state, self.held.random, &random::stored(&self.draws))
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("stats", &self.stats).field("pool", &self.held.pool).finish_non_exhaustive()
    }
}
