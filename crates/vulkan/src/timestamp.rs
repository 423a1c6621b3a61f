//! Timestamps of the GPU, in query slots that are used again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::vk;

use crate::error::Error;
use crate::gpu::GpuCore;
use crate::timeline::Ticket;

const POOL_SLOTS: u32 = 256;

/// A timestamp that was recorded. Its slot is used again when the last clone is dropped.
#[derive(Clone)]
pub struct TimestampId {
    slot: Arc<Slot>,
}

struct Slot {
    index: u32,
    ticket: Ticket,
    free: Arc<FreeSlots>,
}

#[derive(Default)]
struct FreeSlots(Mutex<Vec<u32>>);

impl FreeSlots {
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.free.lock().push(self.index);
    }
}

impl TimestampId {
    /// The submission that writes the timestamp.
    pub fn ticket(&self) -> Ticket {
        self.slot.ticket
    }
}

impl std::fmt::Debug for TimestampId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimestampId").field("slot", &self.slot.index).field("ticket", &self.slot.ticket).finish()
    }
}

/// The query pools of a recorder. They grow with the timestamps that are alive at a time.
#[derive(Default)]
pub(crate) struct Timestamps {
    pools: Vec<vk::QueryPool>,
    free: Arc<FreeSlots>,
}

impl Timestamps {
    /// Records a timestamp that is written when all earlier commands of the queue are done.
    pub(crate) fn record(
        &mut self,
        gpu: &GpuCore,
        commands: vk::CommandBuffer,
        ticket: Ticket,
    ) -> Result<TimestampId, Error> {
        let reused = self.free.lock().pop();
        let index = match reused {
            Some(index) => index,
            None => self.grow(gpu)?,
        };
        let (pool, query) = self.place(index);
        // SAFETY: `commands` is being recorded on a queue that has timestamps. A reset and a write of
        // the same query are ordered by the queue, also after an earlier use of the slot.
        unsafe {
            gpu.device.cmd_reset_query_pool(commands, pool, query, 1);
            gpu.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, query);
        }
        Ok(TimestampId { slot: Arc::new(Slot { index, ticket, free: Arc::clone(&self.free) }) })
    }

    /// The ticks of a timestamp whose submission is complete.
    pub(crate) fn ticks(&self, gpu: &GpuCore, id: &TimestampId) -> Result<Option<u64>, Error> {
        let (pool, query) = self.place(id.slot.index);
        let mut ticks = [0u64];
        // SAFETY: the query was reset and written by a complete submission.
        let result =
            unsafe { gpu.device.get_query_pool_results(pool, query, &mut ticks, vk::QueryResultFlags::TYPE_64) };
        match result {
            Ok(()) => Ok(Some(ticks[0])),
            Err(vk::Result::NOT_READY) => Ok(None),
            Err(error) => Err(gpu.error("vkGetQueryPoolResults", error)),
        }
    }

    /// The timestamp was recorded here.
    pub(crate) fn owns(&self, id: &TimestampId) -> bool {
        Arc::ptr_eq(&self.free, &id.slot.free)
    }

    /// # Safety
    /// No submission that uses the pools is pending.
    pub(crate) unsafe fn destroy(&mut self, gpu: &GpuCore) {
        for pool in self.pools.drain(..) {
            // SAFETY: the caller guarantees it.
            unsafe { gpu.device.destroy_query_pool(pool, None) };
        }
    }

    /// Adds a pool and returns its first slot.
    fn grow(&mut self, gpu: &GpuCore) -> Result<u32, Error> {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(POOL_SLOTS);
        // SAFETY: the device is valid.
        let pool =
            unsafe { gpu.device.create_query_pool(&info, None) }.map_err(|e| gpu.error("vkCreateQueryPool", e))?;
        let first = self.pools.len() as u32 * POOL_SLOTS;
        self.pools.push(pool);
        self.free.lock().extend((first + 1..first + POOL_SLOTS).rev());
        Ok(first)
    }

    fn place(&self, index: u32) -> (vk::QueryPool, u32) {
        (self.pools[(index / POOL_SLOTS) as usize], index % POOL_SLOTS)
    }
}
