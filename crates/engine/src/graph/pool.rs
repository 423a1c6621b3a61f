//! The memory of graphs: pools, and what keeps memory while a graph may use it.

use crate::queue::device_queue::DeviceQueue;
use std::sync::Arc;

/// Memory that graphs allocate from while they are captured. Graphs of one pool may overwrite each
/// other's intermediate results: they must be replayed in the order of their captures, and their
/// outputs read in between.
pub struct GraphPool {
    queue: Arc<DeviceQueue>,
    number: u32,
}

impl GraphPool {
    /// A new pool, empty.
    pub(crate) fn new(queue: &Arc<DeviceQueue>) -> Arc<Self> {
        let number = queue.lock().memory.new_pool();
        Arc::new(Self { queue: Arc::clone(queue), number })
    }

    /// The allocator's number of the pool.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether the pool is memory of this queue's device.
    pub(crate) fn is_of(&self, queue: &Arc<DeviceQueue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }
}

impl Drop for GraphPool {
    fn drop(&mut self) {
        self.queue.lock().memory.end_pool(self.number);
    }
}

impl std::fmt::Debug for GraphPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphPool").field("device", &self.queue.device()).field("number", &self.number).finish()
    }
}

/// The memory that a graph keeps as long as it lives.
pub(crate) struct GraphMemory {
    pub(crate) queue: Arc<DeviceQueue>,
    pub(crate) pool: Arc<GraphPool>,
    /// Segments that are pinned, so that the driver does not get them back.
    pub(crate) pinned: Vec<u32>,
    /// The address to which replays write the states of the generators, or 0.
    pub(crate) random: u64,
}

impl Drop for GraphMemory {
    /// Locks the queue.
    fn drop(&mut self) {
        let memory = &mut self.queue.lock().memory;
        for &slot in &self.pinned {
            memory.unpin(slot);
        }
        if self.random != 0 {
            memory.free(self.random, false);
        }
    }
}
