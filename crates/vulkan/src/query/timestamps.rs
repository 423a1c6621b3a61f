//! Timestamps of the GPU, in queries that are reused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::vk;
use dml_gpu::Ticket;

use super::pool::QueryPool;
use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;

const POOL_QUERIES: u32 = 256;

/// A recorded timestamp. Its query is reused when the last clone is dropped.
#[derive(Clone)]
pub struct TimestampId {
    query: Arc<Query>,
}

struct Query {
    index: u32,
    ticket: Ticket,
    /// The submission was discarded: the query was not reset or written since its last use.
    discarded: AtomicBool,
    free: Arc<FreeQueries>,
}

#[derive(Default)]
struct FreeQueries(Mutex<Vec<u32>>);

impl FreeQueries {
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        self.free.lock().push(self.index);
    }
}

impl TimestampId {
    /// The submission that writes the timestamp.
    pub fn ticket(&self) -> Ticket {
        self.query.ticket
    }

    /// The submission was discarded.
    pub(crate) fn is_discarded(&self) -> bool {
        self.query.discarded.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for TimestampId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimestampId").field("query", &self.query.index).field("ticket", &self.query.ticket).finish()
    }
}

/// The query pools of a recorder's timestamps. Their number grows with the number of live
/// timestamps.
#[derive(Default)]
pub(crate) struct Timestamps {
    pools: Vec<QueryPool>,
    free: Arc<FreeQueries>,
    /// The timestamps of the next submission.
    next: Vec<Arc<Query>>,
}

impl Timestamps {
    /// Records a timestamp that the submission `ticket` writes when all earlier commands of the
    /// queue are done. The queue must have timestamps.
    pub(crate) fn record(
        &mut self,
        device: &Arc<DeviceShared>,
        encoder: &mut Encoder,
        ticket: Ticket,
    ) -> Result<TimestampId, Error> {
        let reused = self.free.lock().pop();
        let index = match reused {
            Some(index) => index,
            None => self.grow(device)?,
        };
        let (pool, query) = self.find(index);
        // SAFETY: the recorder keeps the pools until its submissions are complete, and its queue
        // has timestamps. The query belongs to the pool and to no live `TimestampId`, so the host
        // does not read it meanwhile. On the queue, the reset comes after all earlier uses of the
        // query and before the following write.
        unsafe {
            encoder.reset_queries(pool.raw, query, 1);
            encoder.write_timestamp(pool.raw, query);
        }
        let query = Query { index, ticket, discarded: AtomicBool::new(false), free: Arc::clone(&self.free) };
        let id = TimestampId { query: Arc::new(query) };
        self.next.push(Arc::clone(&id.query));
        Ok(id)
    }

    /// The next submission was submitted.
    pub(crate) fn submitted(&mut self) {
        self.next.clear();
    }

    /// The next submission is discarded, and its timestamps are not written.
    pub(crate) fn discard(&mut self) {
        self.next.drain(..).for_each(|query| query.discarded.store(true, Ordering::Relaxed));
    }

    /// The ticks of a timestamp whose submission is complete and was not discarded.
    pub(crate) fn ticks(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        let (pool, query) = self.find(id.query.index);
        let mut ticks = [0u64];
        // SAFETY: the query belongs to this pool, and a complete submission reset and wrote it; it
        // is not reset again while `id` holds it.
        let there = unsafe { pool.read(query, &mut ticks, vk::QueryResultFlags::TYPE_64) }?;
        Ok(there.then(|| pool.ticks(ticks[0])))
    }

    /// Whether the timestamp was recorded here.
    pub(crate) fn owns(&self, id: &TimestampId) -> bool {
        Arc::ptr_eq(&self.free, &id.query.free)
    }

    /// Adds a pool and returns its first query.
    fn grow(&mut self, device: &Arc<DeviceShared>) -> Result<u32, Error> {
        let pool = QueryPool::new(device, POOL_QUERIES)?;
        let first = self.pools.len() as u32 * POOL_QUERIES;
        self.pools.push(pool);
        self.free.lock().extend((first + 1..first + POOL_QUERIES).rev());
        Ok(first)
    }

    fn find(&self, index: u32) -> (&QueryPool, u32) {
        (&self.pools[(index / POOL_QUERIES) as usize], index % POOL_QUERIES)
    }
}

/// Nanoseconds of a timestamp with `bits` valid bits and ticks of `period` nanoseconds.
pub(crate) fn nanoseconds(ticks: u64, bits: u32, period: f32) -> u64 {
    let valid = if bits >= 64 { ticks } else { ticks & ((1 << bits) - 1) };
    #[expect(clippy::float_cmp, reason = "the common period, exactly")]
    if period == 1.0 { valid } else { (valid as f64 * f64::from(period)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        assert_eq!(nanoseconds(u64::MAX - 1, 64, 1.0), u64::MAX - 1);
        assert_eq!(nanoseconds(0xF_0000_0001, 36, 1.0), 0xF_0000_0001);
        assert_eq!(nanoseconds(0x1F_0000_0001, 36, 1.0), 0xF_0000_0001);
        assert_eq!(nanoseconds(1000, 64, 52.5), 52_500);
    }
}
