//! The device's methods for statistics and profiles.

use crate::device::Device;
use crate::error::Error;
use crate::memory::statistics::{MemoryStats, SegmentInfo};
use crate::profile::activity::Activity;
use crate::submit::statistics::QueueStats;

impl Device {
    /// The allocator's statistics.
    pub fn memory_stats(&self) -> MemoryStats {
        self.queue.lock().memory.stats()
    }

    /// The segments allocated from the driver, and their blocks.
    pub fn memory_snapshot(&self) -> Vec<SegmentInfo> {
        self.queue.lock().memory.snapshot()
    }

    /// Sets every peak to the current value.
    pub fn reset_peak_stats(&self) {
        self.queue.lock().memory.stats_mut().reset_peaks();
    }

    /// Sets the totals of allocations and frees to 0.
    pub fn reset_accumulated_stats(&self) {
        self.queue.lock().memory.stats_mut().reset_totals();
    }

    /// Free bytes, and the device's total. Cached memory does not count as free, nor does that of
    /// other processes if the driver reports it (`VK_EXT_memory_budget`).
    pub fn memory_info(&self) -> (u64, u64) {
        (self.queue.lock().memory.free_bytes(), self.info().memory_total)
    }

    /// Counters of the queue.
    pub fn queue_stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// The number of kernels.
    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }

    /// Waits for the device, and profiles all work on it from then on.
    ///
    /// # Errors
    /// [`dml_gpu::Error::Unsupported`] without timestamps; [`Error::DeviceLost`]; an error of
    /// earlier work.
    pub fn start_profile(&self) -> Result<(), Error> {
        self.queue.start_profile()
    }

    /// Waits for the device, and returns the activities since
    /// [`start_profile`](Self::start_profile); none if that was not called.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. A later call returns an error of earlier work.
    pub fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        self.queue.stop_profile()
    }
}
