//! The device's methods for graphs, and for random numbers, which captures draw in another way.

use crate::device::Device;
use crate::error::Error;
use crate::generator::Generator;
use crate::graph::capture::Capture;
use crate::graph::pool::GraphPool;
use crate::graph::random::{self, RandomSource};
use std::sync::{Arc, Mutex};

impl Device {
    /// A pool for several graphs.
    pub fn graph_pool(&self) -> Arc<GraphPool> {
        GraphPool::new(&self.queue)
    }

    /// From now on this thread's launches on this device are captured, with memory from `pool` or
    /// from a new one.
    ///
    /// # Errors
    /// [`Error::Graph`] if a capture is in progress on this device or the pool belongs to another
    /// device; [`Error::DeviceLost`]; an error of earlier work.
    pub fn capture(&self, pool: Option<&Arc<GraphPool>>) -> Result<Capture, Error> {
        self.graphs.capture(pool)
    }

    /// Fails if the calling thread is capturing, and makes the capture fail: for operations that a
    /// replay would not repeat.
    ///
    /// # Errors
    /// [`Error::Graph`].
    pub fn refuse_in_capture(&self, what: &str) -> Result<(), Error> {
        self.queue.refuse_in_capture(what)
    }

    /// Whether the calling thread is capturing a graph of this device.
    pub fn is_capturing(&self) -> bool {
        self.graphs.is_capturing()
    }

    /// Takes `counters` counters, of four 32-bit numbers each, from a generator (the device's own
    /// for `None`).
    ///
    /// # Errors
    /// In a capture: [`Error::OutOfMemory`], and [`Error::Graph`] for too many generators.
    #[inline]
    pub fn draw(&self, generator: Option<&Arc<Mutex<Generator>>>, counters: u64) -> Result<RandomSource, Error> {
        random::draw(&self.queue, generator.unwrap_or(&self.generator), counters)
    }
}
