//! The begin and end of commands on the device, for a profiler.
//!
//! A span is a pair of timestamps around one command. Both are written when all earlier commands
//! are done, so that spans do not overlap: if two commands run at once, the second span is the
//! additional time of the second command. The sum of all spans is the time during which the device
//! was busy. A pair costs 1.8 µs of GPU time on NVIDIA.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;
use dml_gpu::{Span, Ticket};

use super::pool::QueryPool;
use crate::command::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;

/// The number of spans of a query pool. A pool is reset once, before its first span.
const POOL_SPANS: usize = 128;
const QUERIES: u32 = 2 * POOL_SPANS as u32;

/// A query pool in use.
struct UsedPool {
    pool: QueryPool,
    /// The names of the spans, in order, and the submissions that write their timestamps. There is
    /// at least one.
    ids: Vec<(u64, Ticket)>,
}

/// The query pools of a recorder's spans, in the order of their use.
#[derive(Default)]
pub(crate) struct Spans {
    used: VecDeque<UsedPool>,
    free: Vec<QueryPool>,
}

/// A span that has begun. The query of its end follows the query of its begin.
#[must_use]
pub(crate) struct OpenSpan {
    pool: vk::QueryPool,
    query: u32,
}

impl Spans {
    /// Begins the span of the next command of the submission `ticket`, after its barrier if one was
    /// requested. The queue must have timestamps, and the recorder must keep the spans until its
    /// submissions are complete.
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
            // SAFETY: the recorder keeps the pool until its submissions are complete. Nothing uses
            // the pool: it is new, or the submissions that wrote to it are complete or were
            // discarded.
            unsafe { encoder.reset_queries(pool.raw, 0, QUERIES) };
            self.used.push_back(UsedPool { pool, ids: Vec::with_capacity(POOL_SPANS) });
        }
        let Some(used) = self.used.back_mut() else { return Err(Error::DeviceLost) };
        let span = OpenSpan { pool: used.pool.raw, query: 2 * used.ids.len() as u32 };
        used.ids.push((id, ticket));
        encoder.flush_barrier();
        // SAFETY: the recorder keeps the pool until its submissions are complete, and its queue has
        // timestamps. The pool was reset in this command buffer or in an earlier one that was not
        // discarded: a pool whose reset is discarded is removed from `used`. Since then each query
        // is written once, as `ids` grows; `ids` shrinks only when the commands that would have
        // written are discarded.
        unsafe { encoder.write_timestamp(span.pool, span.query) };
        Ok(span)
    }

    /// Ends a span. The encoder must be that of the begin, or one of a later command buffer of the
    /// same submission, which was not discarded since.
    pub(crate) fn end(encoder: &mut Encoder, span: OpenSpan) {
        // SAFETY: as for the begin: the query after the span's first belongs to the same pool, was
        // reset with it, and is used by this span alone, which ends once.
        unsafe { encoder.write_timestamp(span.pool, span.query + 1) };
    }

    /// The submission `ticket` is discarded, and the timestamps of its spans are not written.
    pub(crate) fn discard(&mut self, ticket: Ticket) {
        while let Some(used) = self.used.back_mut() {
            used.ids.retain(|&(_, of)| of < ticket);
            if !used.ids.is_empty() {
                break;
            }
            // The reset of the pool is discarded, too.
            self.free.extend(self.used.pop_back().map(|used| used.pool));
        }
    }

    /// Whether there are no spans.
    pub(crate) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Moves the spans of submissions up to `done` into `out`. Spans that the driver lost are left
    /// out.
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
        // Each value is followed by a word that says whether it is available.
        let mut times = [[0u64; 2]; 2 * POOL_SPANS];
        let times = &mut times[..2 * self.ids.len()];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        // SAFETY: the queries are in the pool, which a complete submission reset as a whole: the
        // submission of the first span, or an earlier one. A time and its word are two numbers of
        // 64 bits, as the flags say.
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
