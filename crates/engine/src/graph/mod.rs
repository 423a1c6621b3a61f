//! Graphs: work that is captured once and replayed at next to no cost, as CUDA's graphs.
//!
//! Between [`Device::capture`] and [`Capture::end`] what the capturing thread launches on the device is not run but kept.
//! At the end it is scheduled (see [`schedule`]) and recorded into a command buffer of its own, which [`Graph::replay`]
//! enqueues like any other command.
//!
//! - A capture belongs to the thread that began it. What other threads enqueue meanwhile runs as ever; memory that was
//!   allocated in the capture is not theirs to use before it ends.
//! - Memory allocated in a capture comes from a pool of the graph ([`GraphPool`]), and stays the graph's until the last
//!   graph of the pool is dropped. Memory from outside is the caller's to keep: a replay after it was freed computes
//!   with whatever lies there then. The driver never gets it back while a graph names it, so nothing worse happens.
//! - What must wait for the device fails, and so does the capture: [`Capture::end`] then returns the first error. Small uploads are
//!   captured with their bytes.
//! - Random numbers are new in each replay, the same as the captured calls would draw if they ran then.

mod capturing;
mod constants;
mod join;
mod random;
mod schedule;

use crate::device::{Device, Shared, State};
use crate::error::Error;
use crate::queue::hazards::IntervalSet;
use crate::transfer::upload::invalid;
pub(crate) use capturing::Capturing;
use capturing::Node;
use dml_vulkan::Recording;
pub use random::RandomSource;
use random::{Draw, SLOT_BYTES};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Memory that graphs allocate from while they are captured. Graphs of one pool may overwrite each other's
/// intermediate results: they must be replayed in the order of their captures, and their outputs read in between.
pub struct GraphPool {
    shared: Arc<Shared>,
    number: u32,
}

impl Drop for GraphPool {
    fn drop(&mut self) {
        self.shared.lock().allocator.end_pool(self.number);
    }
}

/// A capture in progress. Dropping it discards what was captured.
#[must_use]
pub struct Capture {
    shared: Arc<Shared>,
    pool: Arc<GraphPool>,
    /// Which of the device's captures it is.
    id: u64,
}

/// Captured work of one device.
pub struct Graph {
    replay: Arc<Replay>,
    stats: GraphStats,
    draws: Vec<Draw>,
    held: Held,
}

/// What a graph consists of.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// Launches and copies that were captured.
    pub captured: u32,
    /// Launches and copies of a replay: pointwise ones that follow one another are joined.
    pub launches: u32,
    /// Barriers of a replay, the one before it included.
    pub barriers: u32,
    /// Barriers that the launches would need in the order of their capture.
    pub barriers_in_order: u32,
}

/// What the queue runs.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) recording: Recording,
    pub(crate) launches: u32,
    pub(crate) barriers: u32,
    /// What is accessed after the last barrier.
    pub(crate) read_last: IntervalSet,
    pub(crate) written_last: IntervalSet,
}

/// What a graph keeps of the device's memory.
struct Held {
    shared: Arc<Shared>,
    pool: Arc<GraphPool>,
    /// Segments that it pinned.
    pinned: Vec<u32>,
    /// Where replays put the generators' states, or 0.
    random: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.lock().let_go(&self.pinned, self.random);
    }
}

impl State {
    fn let_go(&mut self, pinned: &[u32], random: u64) {
        for &slot in pinned {
            self.allocator.unpin(slot);
        }
        if random != 0 {
            self.allocator.free(random, false);
        }
    }
}

impl Device {
    /// A pool for several graphs.
    pub fn graph_pool(&self) -> Arc<GraphPool> {
        let shared = Arc::clone(self.shared());
        let number = shared.lock().allocator.new_pool();
        Arc::new(GraphPool { shared, number })
    }

    /// From now on what this thread launches on this device is captured, with memory from `pool` or from a new one.
    ///
    /// # Errors
    /// [`Error::Graph`] when a capture is in progress on this device or the pool is another device's;
    /// [`Error::DeviceLost`]; an error of earlier work.
    pub fn capture(&self, pool: Option<&Arc<GraphPool>>) -> Result<Capture, Error> {
        let shared = self.shared();
        shared.alive()?;
        self.check_faults()?;
        if pool.is_some_and(|pool| !Arc::ptr_eq(&pool.shared, shared)) {
            return Err(shared.graph_error("this pool of graphs belongs to another device"));
        }
        let pool = pool.cloned().unwrap_or_else(|| self.graph_pool());
        let mut state = shared.lock();
        shared.take_deferred()?;
        if let Some(other) = &state.capture {
            let whose = if other.mine() { "this" } else { "another" };
            let what = format!("a graph is being captured by {whose} thread; a device captures one at a time");
            drop(state); // A new pool goes back.
            return Err(shared.graph_error(what));
        }
        let id = state.captures;
        state.captures += 1;
        state.capture = Some(Box::new(Capturing::new(id, pool.number)));
        shared.capturing.store(true, Ordering::Relaxed);
        drop(state);
        Ok(Capture { shared: Arc::clone(shared), pool, id })
    }

    /// Fails if the calling thread is capturing, and with it the capture: for what a replay would not do.
    ///
    /// # Errors
    /// [`Error::Graph`].
    pub fn refuse_in_capture(&self, what: &str) -> Result<(), Error> {
        self.shared().refuse_in_capture(what)
    }

    /// Whether the calling thread is capturing a graph of this device.
    pub fn is_capturing(&self) -> bool {
        self.shared().captures_here()
    }
}

impl Capture {
    /// The pool that the graph allocates from.
    pub fn pool(&self) -> &Arc<GraphPool> {
        &self.pool
    }

    /// Ends the capture: schedules and records what was captured, and waits for kernels that are still being compiled.
    ///
    /// # Errors
    /// [`Error::Graph`] on another thread than the one that began it; the first error of something that could not be captured;
    /// [`Error::Compile`]; [`Error::DeviceLost`]. The capture is over also then.
    pub fn end(self) -> Result<Graph, Error> {
        let shared = &self.shared;
        let mut state = shared.lock();
        match &state.capture {
            Some(capture) if capture.id == self.id && capture.mine() => {}
            _ => {
                drop(state);
                return Err(shared.graph_error("the capture of a graph must end on the thread that began it"));
            }
        }
        let Some(capture) = shared.take_capture(&mut state) else {
            drop(state);
            return Err(shared.graph_error("no graph is being captured"));
        };
        state.allocator.recycle(self.pool.number);
        drop(state);
        let mut capture = *capture;
        let (pinned, random) = (std::mem::take(&mut capture.pinned), capture.random);
        let held = Held {
            shared: Arc::clone(shared),
            pool: Arc::clone(&self.pool),
            pinned: pinned.into_iter().collect(),
            random,
        };
        if let Some(e) = capture.failed {
            return Err(e);
        }
        join::join(&mut capture, &mut shared.joins.lock().unwrap_or_else(PoisonError::into_inner), shared.gpu());
        let Capturing { nodes, commands, bytes, ranges, constants, draws, .. } = capture;
        // Compiled here, and not with the queue locked.
        for node in &nodes {
            shared.wrap(node.compile(shared.gpu()))?;
        }
        let accesses = || nodes.iter().map(|node| node.ranges(&ranges));
        let schedule = schedule::levels(accesses());
        let state = shared.lock();
        let State { allocator, .. } = &*state;
        let recording = shared.gpu().record::<Error>(constants.into_segments(), |commands, constants| {
            let mut level = 0;
            for &at in &schedule.order {
                if schedule.level[at] != level {
                    level = schedule.level[at];
                    commands.barrier();
                }
                match &nodes[at] {
                    Node::Launch { kernel, push, groups, .. } => {
                        commands.dispatch(kernel.pipeline(shared.gpu())?, &bytes[push.clone()], *groups)?;
                    }
                    Node::Copy { constant, from, slot, to, bytes, .. } => {
                        if let Some(segment) = allocator.segment(*slot) {
                            commands.copy(&constants[*constant], *from, segment, *to, *bytes)?;
                        }
                    }
                    Node::Free { .. } => {}
                }
            }
            Ok(())
        });
        drop(state);
        let recording = shared.wrap(recording)?;
        let launches = nodes.len() as u32;
        let barriers = schedule.levels;
        let barriers_in_order = schedule::barriers_in_order(accesses());
        let (read_last, written_last) = schedule::last(&schedule, accesses());
        let replay = Arc::new(Replay { recording, launches, barriers, read_last, written_last });
        Ok(Graph {
            replay,
            stats: GraphStats { captured: commands, launches, barriers, barriers_in_order },
            draws,
            held,
        })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.capture.as_ref().is_none_or(|capture| capture.id != self.id) {
            return; // It ended.
        }
        let capture = self.shared.take_capture(&mut state);
        if let Some(capture) = &capture {
            let pinned: Vec<u32> = capture.pinned.iter().copied().collect();
            state.let_go(&pinned, capture.random);
        }
        state.allocator.recycle(self.pool.number);
        drop(state);
    }
}

impl Graph {
    /// Enqueues the captured work, after everything enqueued before.
    ///
    /// # Errors
    /// [`Error::Graph`] while the calling thread captures a graph of the device; [`Error::DeviceLost`]; an error of earlier work.
    pub fn replay(&self) -> Result<(), Error> {
        let shared = &*self.held.shared;
        shared.alive()?;
        shared.refuse_in_capture("a replay of another graph")?;
        shared.check_faults()?;
        if self.replay.launches == 0 {
            return Ok(());
        }
        let mut state = shared.lock();
        shared.take_deferred()?;
        self.draw(&mut state)?;
        state.queue.push_replay(&self.replay);
        shared.enqueued_replay(&mut state, self.replay.launches)
    }

    /// What the graph consists of.
    pub fn stats(&self) -> GraphStats {
        self.stats
    }

    /// The pool that the graph's memory is of.
    pub fn pool(&self) -> &Arc<GraphPool> {
        &self.held.pool
    }

    /// Reserves the numbers of this replay, and has their seeds and offsets written where the kernels read them.
    fn draw(&self, state: &mut State) -> Result<(), Error> {
        if self.draws.is_empty() {
            return Ok(());
        }
        let shared = &*self.held.shared;
        let words: Vec<u8> = self.draws.iter().flat_map(|draw| draw.reserve(shared)).collect();
        debug_assert_eq!(words.len() as u64, self.draws.len() as u64 * SLOT_BYTES);
        shared.upload_small(state, self.held.random, &words)
    }
}

impl Shared {
    /// Whether the calling thread is capturing.
    pub(crate) fn captures_here(&self) -> bool {
        self.capturing.load(Ordering::Relaxed) && self.lock().capture.as_ref().is_some_and(|capture| capture.mine())
    }

    /// As [`Device::refuse_in_capture`].
    #[inline]
    pub(crate) fn refuse_in_capture(&self, what: &str) -> Result<(), Error> {
        if self.capturing.load(Ordering::Relaxed) { self.refuse(what) } else { Ok(()) }
    }

    #[cold]
    fn refuse(&self, what: &str) -> Result<(), Error> {
        match &mut self.lock().capture {
            Some(capture) if capture.mine() => {
                let error = self.graph_error(format!("a graph is being captured, and {what} cannot be part of it"));
                Err(capture.fail(error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn graph_error(&self, what: impl Into<String>) -> Error {
        Error::Graph { device: self.index(), what: what.into() }
    }

    fn take_capture(&self, state: &mut State) -> Option<Box<Capturing>> {
        self.capturing.store(false, Ordering::Relaxed);
        state.capture.take()
    }

    /// Allocates for the capture of the calling thread; `None` if it captures nothing.
    #[cold]
    pub(crate) fn allocate_captured(&self, state: &mut State, bytes: u64) -> Option<Result<u64, Error>> {
        let pool = state.capture.as_ref().filter(|capture| capture.mine())?.pool;
        let address = match state.allocator.take(pool, bytes) {
            Some(address) => Ok(address),
            None => self.grow(state, pool, bytes),
        };
        if let (Ok(address), Some(capture)) = (&address, &mut state.capture) {
            capture.allocated.insert(*address);
        }
        Some(address)
    }

    /// Captures a launch of the capturing thread. False if it must run: it is another thread's.
    #[cold]
    pub(crate) fn capture_launch(&self, state: &mut State, launch: &crate::Launch<'_>) -> Result<bool, Error> {
        let State { capture, allocator, .. } = state;
        let Some(capture) = capture else { return Ok(false) };
        if capture.mine() {
            let captured = capture.launch(self.gpu(), allocator, launch);
            return self.wrap(captured).map(|()| true);
        }
        let foreign = launch.reads.iter().chain(launch.writes).any(|&range| capture.owns(allocator, range));
        if foreign {
            let what = format!("{} uses memory of a graph that another thread is capturing", launch.operator);
            return Err(self.graph_error(what));
        }
        Ok(false)
    }

    /// Captures an upload of at most [`SMALL_COPY`](crate::device::SMALL_COPY) bytes with its bytes. False if the calling
    /// thread captures nothing.
    #[cold]
    pub(crate) fn capture_upload(&self, state: &mut State, dst: u64, data: &[u8]) -> Result<bool, Error> {
        let State { capture, allocator, .. } = state;
        let Some(capture) = capture.as_mut().filter(|capture| capture.mine()) else { return Ok(false) };
        if allocator.locate(dst, data.len() as u64).is_none() {
            return Err(invalid("upload", dst, data.len() as u64));
        }
        let captured = capture.upload(self.gpu(), allocator, self.copy_words(), dst, data);
        self.wrap(captured).map(|()| true)
    }
}

impl std::fmt::Debug for GraphPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphPool").field("device", &self.shared.index()).field("number", &self.number).finish()
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("stats", &self.stats).field("pool", &self.held.pool).finish_non_exhaustive()
    }
}
