//! Pools of timestamp queries.

use std::sync::Arc;

use ash::vk;

use crate::device::DeviceShared;
use crate::error::Error;

/// A pool of timestamps. Its owner, a recorder, waits for its submissions before it drops the pool.
pub(super) struct QueryPool {
    pub(super) raw: vk::QueryPool,
    device: Arc<DeviceShared>,
}

impl QueryPool {
    pub(super) fn new(device: &Arc<DeviceShared>, queries: u32) -> Result<Self, Error> {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(queries);
        // SAFETY: the device is valid; `info` lives through the call, and the number is not 0.
        let raw =
            unsafe { device.raw.create_query_pool(&info, None) }.map_err(|e| device.error("vkCreateQueryPool", e))?;
        Ok(Self { raw, device: Arc::clone(device) })
    }

    /// Reads queries, beginning with `first`. False if some are not available.
    ///
    /// # Safety
    /// The pool has as many queries from `first` on as `out` has elements, and a complete
    /// submission has reset each of them. `T` is the number, or the array of numbers, that `flags`
    /// have the driver write for a query; any bits are a valid value of it.
    pub(super) unsafe fn read<T>(&self, first: u32, out: &mut [T], flags: vk::QueryResultFlags) -> Result<bool, Error> {
        // SAFETY: the pool belongs to this device and lives as long as `self`; the rest is the
        // caller's promise.
        match unsafe { self.device.raw.get_query_pool_results(self.raw, first, out, flags) } {
            Ok(()) => Ok(true),
            Err(vk::Result::NOT_READY) => Ok(false),
            Err(error) => Err(self.device.error("vkGetQueryPoolResults", error)),
        }
    }
}

impl QueryPool {
    /// The value of a timestamp in the unit that the adapter reports.
    pub(super) fn ticks(&self, read: u64) -> u64 {
        self.device.adapter.ticks(read)
    }
}

impl Drop for QueryPool {
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // SAFETY: the pool belongs to this device and has no other owner. The owner waited for its
        // submissions, so none that uses the pool is pending, or the device is lost, after which
        // objects may be destroyed.
        unsafe { self.device.raw.destroy_query_pool(self.raw, None) };
    }
}
