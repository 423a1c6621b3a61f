//! The device's methods that tell what it holds, did and does.

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

    /// What lies where in the memory held from the driver.
    pub fn memory_snapshot(&self) -> Vec<SegmentInfo> {
        self.queue.lock().memory.snapshot()
    }

    /// Sets every peak to the current value.
    pub fn reset_peak_stats(&self) {
        self.queue.lock().memory.stats_mut().reset_peaks();
    }

    /// Sets the counters of all that was ever allocated and freed to 0.
    pub fn reset_accumulated_stats(&self) {
        self.queue.lock().memory.stats_mut().reset_totals();
    }

    /// Bytes that are free, and the device's total. Cached memory counts as not free, and that of other processes where the
    /// driver tells of it (`VK_EXT_memory_budget`).
    pub fn memory_info(&self) -> (u64, u64) {
        (self.queue.lock().memory.free_bytes(), self.info().memory_total)
    }

    /// Counters of the queue.
    pub fn queue_stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// How many kernels there are.
    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }

    /// Waits for the device, and notes from then on what runs on it.
    ///
    /// # Errors
    /// [`dml_gpu::Error::Unsupported`] without timestamps; [`Error::DeviceLost`]; an error of earlier work.
    pub fn start_profile(&self) -> Result<(), Error> {
        self.queue.start_profile()
    }

    /// Waits for the device, and returns what ran on it since [`start_profile`](Self::start_profile); nothing if that
    /// was not called.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. An error of earlier work is a later call's.
    pub fn stop_profile(&self) -> Result<Vec<Activity>, Error> {
        self.queue.stop_profile()
    }
}
