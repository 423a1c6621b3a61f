//! The beginning and the end of captures.

use crate::capture::capturing::Capturing;
use crate::error::Error;
use crate::fusion::chain::Fusion;
use crate::graph::build;
use crate::graph::pool::{GraphMemory, GraphPool};
use crate::graph::replay::Graph;
use crate::graph::report;
use crate::queue::device_queue::{DeviceQueue, State};
use crate::transfer::upload::Uploads;
use std::sync::{Arc, Mutex};

/// The state that all graphs of a device share.
pub(crate) struct Graphs {
    queue: Arc<DeviceQueue>,
    uploads: Arc<Uploads>,
    /// Fuses the launches of captures, whose fused kernels are compiled at the end of the capture.
    fusion: Mutex<Fusion>,
}

/// A capture in progress. Dropping it discards what was captured.
#[must_use]
pub struct Capture {
    graphs: Arc<Graphs>,
    pool: Arc<GraphPool>,
    /// The number of the capture on its device.
    number: u64,
}

impl Graphs {
    pub(crate) fn new(queue: Arc<DeviceQueue>, uploads: Arc<Uploads>) -> Self {
        let fusion = Mutex::new(Fusion::waiting(Arc::clone(&queue.kernels)));
        Self { queue, uploads, fusion }
    }

    /// Whether the calling thread is capturing.
    pub(crate) fn is_capturing(&self) -> bool {
        self.queue.may_capture() && self.queue.lock().capture.here().is_some()
    }

    /// Begins to capture the calling thread's launches, with memory from `pool` or from a new pool.
    ///
    /// # Errors
    /// As [`Device::capture`](crate::Device::capture).
    pub(crate) fn capture(self: &Arc<Self>, pool: Option<&Arc<GraphPool>>) -> Result<Capture, Error> {
        let queue = &self.queue;
        queue.submission.alive()?;
        queue.check_faults()?;
        if pool.is_some_and(|pool| !pool.is_of(queue)) {
            return Err(Error::graph(queue.device(), "this pool of graphs belongs to another device"));
        }
        let pool = pool.map_or_else(|| GraphPool::new(queue), Arc::clone);
        let mut state = queue.lock();
        let begun = queue.submission.take_deferred().and_then(|()| state.capture.begin(pool.number()));
        if begun.is_ok() {
            queue.set_capturing(true);
        }
        drop(state); // A new pool goes back if there was an error.
        Ok(Capture { graphs: Arc::clone(self), number: begun?, pool })
    }

    /// Ends the capture in progress, and carries out the frees in its pool.
    fn take(&self, state: &mut State, pool: &GraphPool) -> Option<Box<Capturing>> {
        self.queue.set_capturing(false);
        let capture = state.capture.take();
        state.memory.reclaim(pool.number());
        capture
    }
}

impl Capture {
    /// The pool that the graph allocates from.
    pub fn pool(&self) -> &Arc<GraphPool> {
        &self.pool
    }

    /// Ends the capture: schedules and records what was captured, and waits for kernels that are
    /// still being compiled.
    ///
    /// # Errors
    /// [`Error::Graph`] on another thread than the one that began it; the first error of something
    /// that could not be captured; [`Error::Compile`]; [`Error::DeviceLost`]. The capture is over
    /// also then.
    pub fn end(self) -> Result<Graph, Error> {
        let Graphs { queue, uploads, fusion } = &*self.graphs;
        let mut state = queue.lock();
        if !state.capture.is(self.number) || state.capture.here().is_none() {
            drop(state);
            let what = "the capture of a graph must end on the thread that began it";
            return Err(Error::graph(queue.device(), what));
        }
        let Some(mut capture) = self.graphs.take(&mut state, &self.pool) else {
            drop(state);
            return Err(Error::graph(queue.device(), "no graph is being captured"));
        };
        drop(state);
        let memory = take_memory(&mut capture, queue, &self.pool);
        if let Some(e) = capture.failed {
            return Err(e);
        }
        let draws = std::mem::take(&mut capture.draws);
        let report = capture.reports.then(|| report::kernel(&queue.kernels)).transpose()?;
        let (replays, stats) = build::build(queue, fusion, *capture)?;
        Ok(Graph { replays, stats, draws, report, uploads: Arc::clone(uploads), memory })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let queue = &self.graphs.queue;
        let mut state = queue.lock();
        if !state.capture.is(self.number) {
            return; // The capture has ended.
        }
        let capture = self.graphs.take(&mut state, &self.pool);
        drop(state);
        drop(capture.map(|mut capture| take_memory(&mut capture, queue, &self.pool)));
    }
}

/// Takes over the memory that a capture keeps. The result is to be dropped with the queue unlocked.
fn take_memory(capture: &mut Capturing, queue: &Arc<DeviceQueue>, pool: &Arc<GraphPool>) -> GraphMemory {
    let pinned = std::mem::take(&mut capture.pinned).into_iter().collect();
    GraphMemory { queue: Arc::clone(queue), pool: Arc::clone(pool), pinned, random: capture.random }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("pool", &self.pool).finish_non_exhaustive()
    }
}
