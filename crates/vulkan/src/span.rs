//! When commands began and ended on the device, for a profiler.
//!
//! A span is a pair of timestamps around one command. Both are written when all earlier commands are done, so that
//! spans do not overlap: of two commands that run at once, the second's span is the time it took longer than the
//! first. The sum of all spans is the time that the device was busy. A pair costs 1.8 µs of GPU time on NVIDIA.

use std::collections::VecDeque;

use ash::vk;

use crate::error::Error;
use crate::gpu::GpuCore;
use crate::recorder::Recorder;
use crate::timeline::Ticket;

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
struct Pool {
    raw: vk::QueryPool,
    /// What the spans are called, in their order.
    ids: Vec<u64>,
    /// The submission that writes the last of its timestamps.
    ticket: Ticket,
}

/// The query pools of a recorder's spans, in the order of their use.
#[derive(Default)]
pub(crate) struct Spans {
    pools: VecDeque<Pool>,
    free: Vec<vk::QueryPool>,
}

impl Spans {
    /// # Safety
    /// No submission that uses the pools is pending.
    pub(crate) unsafe fn destroy(&mut self, gpu: &GpuCore) {
        for pool in self.pools.drain(..).map(|pool| pool.raw).chain(self.free.drain(..)) {
            // SAFETY: the caller guarantees it.
            unsafe { gpu.device.destroy_query_pool(pool, None) };
        }
    }

    /// The pool and the query of the next span's begin; its end is the query after it.
    fn next(
        &mut self,
        gpu: &GpuCore,
        commands: vk::CommandBuffer,
        ticket: Ticket,
        id: u64,
    ) -> Result<(vk::QueryPool, u32), Error> {
        if self.pools.back().is_none_or(|pool| pool.ids.len() == POOL_SPANS) {
            let raw = match self.free.pop() {
                Some(raw) => raw,
                None => create(gpu)?,
            };
            // SAFETY: `commands` is being recorded; nothing uses the pool: its results were read, or it is new.
            unsafe { gpu.device.cmd_reset_query_pool(commands, raw, 0, QUERIES) };
            self.pools.push_back(Pool { raw, ids: Vec::with_capacity(POOL_SPANS), ticket });
        }
        let Some(pool) = self.pools.back_mut() else { return Err(Error::DeviceLost) };
        pool.ticket = ticket;
        let query = 2 * pool.ids.len() as u32;
        pool.ids.push(id);
        Ok((pool.raw, query))
    }
}

fn create(gpu: &GpuCore) -> Result<vk::QueryPool, Error> {
    let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(QUERIES);
    // SAFETY: the device is valid.
    unsafe { gpu.device.create_query_pool(&info, None) }.map_err(|e| gpu.error("vkCreateQueryPool", e))
}

impl Recorder {
    /// Runs `command`, which records one command, and has the device note when that began and ended: behind the
    /// barrier that was asked for, if any. [`take_spans`](Self::take_spans) gives the times under the name `id`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`]; the
    /// command's.
    pub fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.timestamps_exist()?;
        let commands = self.open_batch()?;
        let ticket = Ticket(self.last_ticket().0 + 1);
        let (pool, query) = self.spans.next(&self.gpu, commands, ticket, id)?;
        self.begin()?;
        self.write_timestamp(commands, pool, query);
        let done = command(self);
        // The command may have gone into a batch of its own.
        let commands = self.open_batch()?;
        self.write_timestamp(commands, pool, query + 1);
        done
    }

    fn write_timestamp(&self, commands: vk::CommandBuffer, pool: vk::QueryPool, query: u32) {
        // SAFETY: `commands` is being recorded on a queue that has timestamps; the query was reset and is written once.
        unsafe {
            self.gpu.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, query);
        }
    }

    /// Moves the spans that are known into `out`; those of work that is not done follow later. One that the driver lost
    /// is left out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    pub fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        if self.spans.pools.is_empty() {
            return Ok(());
        }
        let done = self.timeline().completed()?;
        while self.spans.pools.front().is_some_and(|pool| pool.ticket <= done) {
            let Some(pool) = self.spans.pools.pop_front() else { break };
            self.spans.free.push(pool.raw);
            self.read_spans(&pool, out)?;
        }
        Ok(())
    }

    fn read_spans(&self, pool: &Pool, out: &mut Vec<(u64, Span)>) -> Result<(), Error> {
        // Each with a word that says whether it is there.
        let mut times = [[0u64; 2]; 2 * POOL_SPANS];
        let times = &mut times[..2 * pool.ids.len()];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WITH_AVAILABILITY;
        // SAFETY: the queries are in the pool.
        match unsafe { self.gpu.device.get_query_pool_results(pool.raw, 0, times, flags) } {
            Ok(()) | Err(vk::Result::NOT_READY) => {}
            Err(error) => return Err(self.gpu.error("vkGetQueryPoolResults", error)),
        }
        for (&id, pair) in pool.ids.iter().zip(times.chunks_exact(2)) {
            let ([begin, begun], [end, ended]) = (pair[0], pair[1]);
            if begun != 0 && ended != 0 {
                out.push((id, Span { begin, end }));
            }
        }
        Ok(())
    }
}
