//! When commands began and ended on the device, for a profiler.
//!
//! A span is a pair of timestamps around one command. Both are written when all earlier commands are done, so that
//! spans do not overlap: of two commands that run at once, the second's span is the time it took longer than the
//! first. The sum of all spans is the time that the device was busy. A pair costs 1.8 µs of GPU time on NVIDIA.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;
use dml_gpu::{Span, Ticket};

use super::pool::QueryPool;
use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;

/// Spans of a query pool. A pool is reset once, ahead of its first span.
const POOL_SPANS: usize = 128;
const QUERIES: u32 = 2 * POOL_SPANS as u32;

/// A query pool that is in use.
struct UsedPool {
    pool: QueryPool,
    /// What the spans are called, in their order, and the submissions that write their timestamps. There is one at least.
    ids: Vec<(u64, Ticket)>,
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
            // SAFETY: the recorder keeps the pool until its submissions are complete. Nothing uses it: it is new, or the
            // submissions that wrote to it are complete, or were discarded.
            unsafe { encoder.reset_queries(pool.raw, 0, QUERIES) };
            self.used.push_back(UsedPool { pool, ids: Vec::with_capacity(POOL_SPANS) });
        }
        let Some(used) = self.used.back_mut() else { return Err(Error::DeviceLost) };
        let span = OpenSpan { pool: used.pool.raw, query: 2 * used.ids.len() as u32 };
        used.ids.push((id, ticket));
        encoder.flush_barrier();
        // SAFETY: the recorder keeps the pool until its submissions are complete, and its queue has timestamps. The pool
        // was reset in this command buffer, or in one before it that was not discarded: a pool whose reset is discarded
        // leaves `used`. Since then each query is written once, as `ids` grows; where it shrinks, the commands that
        // would have written are discarded.
        unsafe { encoder.write_timestamp(span.pool, span.query) };
        Ok(span)
    }

    /// Ends a span. The encoder is that of its begin, or one of a later command buffer of the same submission, which was
    /// not discarded since.
    pub(crate) fn end(encoder: &mut Encoder, span: OpenSpan) {
        // SAFETY: as for the begin: the query after the span's first is of the same pool, reset with it, and the span's
        // alone, which ends once.
        unsafe { encoder.write_timestamp(span.pool, span.query + 1) };
    }

    /// The submission that would have been `ticket` is discarded, and what would have written its spans with it.
    pub(crate) fn discard(&mut self, ticket: Ticket) {
        while let Some(used) = self.used.back_mut() {
            used.ids.retain(|&(_, of)| of < ticket);
            if !used.ids.is_empty() {
                break;
            }
            // Its reset is discarded, too.
            self.free.extend(self.used.pop_back().map(|used| used.pool));
        }
    }

    /// There is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Moves the spans of submissions up to `done` into `out`. One that the driver lost is left out.
    pub(crate) fn take(&mut self, done: Ticket, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        while self.used.front().is_some_and(|used| used.ids.last().is_none_or(|&(_, last)| last <= done)) {
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
        // SAFETY: the queries are in the pool, which a submission reset as a whole that is complete: that of the first
        // span, or an earlier one. A time and its word are two numbers of 64 bits, as the flags say.
        unsafe { self.pool.read(0, times, flags) }?;
        for (&(id, _), pair) in self.ids.iter().zip(times.chunks_exact(2)) {
            let ([begin, begun], [end, ended]) = (pair[0], pair[1]);
            if begun != 0 && ended != 0 {
                out.push((id, Span { begin: self.pool.ticks(begin), end: self.pool.ticks(end) }));
            }
        }
        Ok(())
    }
}
