//! When commands began and ended on the device, for a profiler.
//!
//! A span is a pair of timestamps around one command. Both are written when all earlier commands are done, so that
//! spans do not overlap: of two commands that run at once, the second's span is the time it took longer than the
//! first. The sum of all spans is the time that the device was busy. A pair costs 1.8 µs of GPU time on NVIDIA.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;

use super::pool::QueryPool;
use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;
use crate::ticket::Ticket;

/// Spans of a query pool. A pool is reset once, ahead of its first span.
const POOL_SPANS: usize = 128;
const QUERIES: u32 = 2 * POOL_SPANS as u32;

/// Begin and end of one command, in ticks of the device's clock; see [`Clocks`](crate::Clocks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When everything before the command was done.
    pub begin: u64,
    /// When the command was done.
    pub end: u64,
}

/// A query pool that is in use.
struct UsedPool {
    pool: QueryPool,
    /// What the spans are called, in their order.
    ids: Vec<u64>,
    /// The submission that writes the last of its timestamps.
    ticket: Ticket,
}

/// The query pools of a recorder's spans, in the order of their use.
#[derive(Default)]
pub(crate) struct Spans {
    used: VecDeque<UsedPool>,
    free: Vec<QueryPool>,
}

/// A span that has begun. Its end is the query after its begin.
#[must_use]
pub(crate) struct OpenSpan {
    pool: vk::QueryPool,
    query: u32,
}

impl Spans {
    /// Begins the span of the next command of the submission `ticket`, behind the barrier that was asked for, if any.
    /// The queue has timestamps, and the recorder keeps the spans until its submissions are complete.
    pub(crate) fn begin(
        &mut self,
        device: &Arc<DeviceShared>,
        encoder: &mut Encoder,
        ticket: Ticket,
        id: u64,
    ) -> Result<OpenSpan, Error> {
        if self.used.back().is_none_or(|used| used.ids.len() == POOL_SPANS) {
            let pool = match self.free.pop() {
                Some(pool) => pool,
                None => QueryPool::new(device, QUERIES)?,
            };
            // SAFETY: nothing uses the pool: its results were read, or it is new.
            unsafe { encoder.reset_queries(pool.raw, 0, QUERIES) };
            self.used.push_back(UsedPool { pool, ids: Vec::with_capacity(POOL_SPANS), ticket });
        }
        let Some(used) = self.used.back_mut() else { return Err(Error::DeviceLost) };
        used.ticket = ticket;
        let span = OpenSpan { pool: used.pool.raw, query: 2 * used.ids.len() as u32 };
        used.ids.push(id);
        encoder.flush_barrier();
        // SAFETY: the pool was reset in this command buffer or before it, and each query is written once since.
        unsafe { encoder.write_timestamp(span.pool, span.query) };
        Ok(span)
    }

    /// Ends a span. The encoder is that of its begin, or one of a later command buffer of the same submission.
    pub(crate) fn end(encoder: &mut Encoder, span: OpenSpan) {
        // SAFETY: the query was reset ahead of the span's begin and is written once.
        unsafe { encoder.write_timestamp(span.pool, span.query + 1) };
    }

    /// There is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Moves the spans of submissions up to `done` into `out`. One that the driver lost is left out.
    pub(crate) fn take(&mut self, done: Ticket, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        while self.used.front().is_some_and(|used| used.ticket <= done) {
            let Some(used) = self.used.pop_front() else { break };
            let read = used.read(out);
            self.free.push(used.pool);
            read?;
        }
        Ok(())
    }
}

impl UsedPool {
    fn read(&self, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        // Each with a word that says whether it is there.
        let mut times = [[0u64; 2]; 2 * POOL_SPANS];
        let times = &mut times[..2 * self.ids.len()];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        // SAFETY: the queries are in the pool, which was reset as a whole.
        unsafe { self.pool.read(0, times, flags) }?;
        for (&id, pair) in self.ids.iter().zip(times.chunks_exact(2)) {
            let ([begin, begun], [end, ended]) = (pair[0], pair[1]);
            if begun != 0 && ended != 0 {
                out.push((id, Span { begin: self.pool.ticks(begin), end: self.pool.ticks(end) }));
            }
        }
        Ok(())
    }
}
