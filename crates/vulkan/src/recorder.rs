//! The command stream of a queue.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;

use crate::error::Error;
use crate::gpu::GpuCore;
use crate::memory::Segment;
use crate::pipeline::Pipeline;
use crate::recording::Recording;
use crate::span::Spans;
use crate::timeline::{Ticket, Timeline};
use crate::timestamp::{TimestampId, Timestamps};

/// Submissions that may be pending; the next one waits for the oldest.
const MAX_PENDING: usize = 256;
/// With markers, finished command buffers are collected when so many are pending.
const COLLECT_AT: usize = 64;

/// Records commands and submits them in batches. Commands run in the order of the calls, and
/// overlap unless there is a [`barrier`](Recorder::barrier) between them. Dropping a recorder discards what was not submitted and
/// waits for what was.
pub struct Recorder {
    pub(crate) gpu: Arc<GpuCore>,
    timeline: Timeline,
    pool: vk::CommandPool,
    /// The batch that is being recorded.
    pub(crate) open: Option<Batch>,
    /// What goes before it in the same submission: recordings, each with the batch that it closed.
    pub(crate) closed: Vec<(Option<Batch>, Recording)>,
    /// The command buffers of a submission.
    buffers: Vec<vk::CommandBuffer>,
    /// Batches that were submitted, oldest first.
    pending: VecDeque<Batch>,
    /// Batches to use again.
    free: Vec<Batch>,
    timestamps: Timestamps,
    pub(crate) spans: Spans,
    /// Tickets of other timelines that the next submission waits for.
    after: Vec<(Timeline, u64)>,
    pub(crate) recorded: usize,
    pub(crate) bound: vk::Pipeline,
    pub(crate) barrier: bool,
    host_barrier: bool,
    pub(crate) transfer: bool,
}

/// A command buffer and what must live until it has run.
pub(crate) struct Batch {
    pub(crate) commands: vk::CommandBuffer,
    ticket: u64,
    pub(crate) pipelines: Vec<Pipeline>,
    recordings: Vec<Recording>,
    after: Vec<(Timeline, u64)>,
}

impl Batch {
    pub(crate) fn new(commands: vk::CommandBuffer) -> Self {
        Self { commands, ticket: 0, pipelines: Vec::new(), recordings: Vec::new(), after: Vec::new() }
    }
}

impl Recorder {
    pub(crate) fn new(gpu: &Arc<GpuCore>, transfer: bool) -> Result<Self, Error> {
        gpu.check()?;
        let family = match &gpu.transfer {
            Some(queue) if transfer => queue.family,
            _ => gpu.compute.family,
        };
        let timeline = Timeline::new(gpu, transfer)?;
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family.index)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER | vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: the device is valid and has a queue of this family.
        let pool =
            unsafe { gpu.device.create_command_pool(&info, None) }.map_err(|e| gpu.error("vkCreateCommandPool", e))?;
        Ok(Self {
            gpu: Arc::clone(gpu),
            timeline,
            pool,
            open: None,
            closed: Vec::new(),
            buffers: Vec::new(),
            pending: VecDeque::new(),
            free: Vec::new(),
            timestamps: Timestamps::default(),
            spans: Spans::default(),
            after: Vec::new(),
            recorded: 0,
            bound: vk::Pipeline::null(),
            barrier: false,
            host_barrier: false,
            transfer,
        })
    }

    /// Runs a kernel with push constants `push` over `groups` workgroups. No group along an axis is no work.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `push` is not [`Pipeline::push_bytes`] long, if there are more groups than
    /// [`max_groups`](crate::Capabilities::max_groups), if the pipeline is another device's, or on a transfer
    /// recorder; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    pub fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.check_dispatch(pipeline, push, groups)?;
        if groups.contains(&0) {
            return Ok(());
        }
        let commands = self.begin()?;
        let device = &self.gpu.device;
        if self.bound != pipeline.raw() {
            self.bound = pipeline.raw();
            if let Some(batch) = &mut self.open {
                batch.pipelines.push(pipeline.clone());
            }
            // SAFETY: `commands` is being recorded; the batch keeps the pipeline until it has run.
            unsafe {
                device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw());
            }
        }
        // SAFETY: `commands` is being recorded; the constants fill the layout's range, and the counts
        // are within the limits.
        unsafe {
            if !push.is_empty() {
                device.cmd_push_constants(commands, pipeline.layout(), vk::ShaderStageFlags::COMPUTE, 0, push);
            }
            device.cmd_dispatch(commands, groups[0], groups[1], groups[2]);
        }
        self.recorded += 1;
        Ok(())
    }

    /// Makes what earlier commands wrote visible to later ones, and keeps later ones from writing
    /// what earlier ones read. Costs 2 µs of GPU time. Two in a row are one; one with no
    /// later command is none.
    pub fn barrier(&mut self) {
        self.barrier = true;
    }

    /// Makes what the commands up to the next submit write to mapped memory visible to the host once
    /// that submit is complete. Costs about 3.5 µs of GPU time, once a submit.
    pub fn host_barrier(&mut self) {
        self.host_barrier = true;
    }

    /// Copies `bytes` bytes. Large copies inside a device's memory are three times faster as a kernel.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside its segment or an overlap;
    /// [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    pub fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.gpu.check()?;
        const CALL: &str = "Recorder::copy";
        check_range(CALL, "source", src, src_offset, bytes)?;
        check_range(CALL, "destination", dst, dst_offset, bytes)?;
        if src.buffer == dst.buffer && src_offset.abs_diff(dst_offset) < bytes {
            return Err(invalid(CALL, format!("{bytes} bytes from {src_offset} overlap those from {dst_offset}")));
        }
        if bytes == 0 {
            return Ok(());
        }
        let commands = self.begin()?;
        let region = vk::BufferCopy { src_offset, dst_offset, size: bytes };
        // SAFETY: `commands` is being recorded; the ranges are inside their buffers and do not overlap.
        // The caller keeps the segments until the copy is done.
        unsafe {
            self.gpu.device.cmd_copy_buffer(commands, src.buffer, dst.buffer, &[region]);
        }
        self.recorded += 1;
        Ok(())
    }

    /// Writes `data`, which travels in the command stream. Made for less than 4 KiB.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless offset and length are multiples of 4, the length is at most 65,536
    /// and the range is inside the segment; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    pub fn update(&mut self, dst: &Segment, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.gpu.check()?;
        const CALL: &str = "Recorder::update";
        check_range(CALL, "destination", dst, offset, data.len() as u64)?;
        if !offset.is_multiple_of(4) || !data.len().is_multiple_of(4) || data.len() > 65_536 {
            return Err(invalid(
                CALL,
                format!("{} bytes at offset {offset}: multiples of 4 up to 65536 are possible", data.len()),
            ));
        }
        if data.is_empty() {
            return Ok(());
        }
        let commands = self.begin()?;
        // SAFETY: `commands` is being recorded; offset, length and range were checked.
        unsafe {
            self.gpu.device.cmd_update_buffer(commands, dst.buffer, offset, data);
        }
        self.recorded += 1;
        Ok(())
    }

    /// Records the time at which all earlier commands are done. A pair costs 1.8 µs of GPU time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    pub fn timestamp(&mut self) -> Result<TimestampId, Error> {
        self.timestamps_exist()?;
        let commands = self.open_batch()?;
        let ticket = Ticket(self.timeline.last_ticket().0 + 1);
        let id = self.timestamps.record(&self.gpu, commands, ticket)?;
        self.recorded += 1;
        Ok(id)
    }

    /// The time of a timestamp in nanoseconds since an arbitrary moment, the same for all timestamps
    /// of a device; `None` while its submission is not complete.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timestamp of another recorder; [`Error::DeviceLost`].
    pub fn timestamp_ns(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        let period = self.gpu.adapter.info.capabilities.timestamp_period_ns;
        let bits = self.gpu.compute.family.timestamp_bits;
        Ok(self.timestamp_ticks(id)?.map(|ticks| nanoseconds(ticks, bits, period)))
    }

    /// As [`timestamp_ns`](Self::timestamp_ns), in ticks of the device's clock.
    pub(crate) fn timestamp_ticks(&self, id: &TimestampId) -> Result<Option<u64>, Error> {
        self.gpu.check()?;
        if !self.timestamps.owns(id) {
            return Err(invalid("Recorder::timestamp_ns", "the timestamp is another recorder's".to_owned()));
        }
        if self.timeline.completed()? < id.ticket() {
            return Ok(None);
        }
        self.timestamps.ticks(&self.gpu, id)
    }

    pub(crate) fn timestamps_exist(&self) -> Result<(), Error> {
        self.gpu.check()?;
        if self.transfer || self.gpu.compute.family.timestamp_bits == 0 {
            return Err(Error::Unsupported {
                adapter: self.gpu.adapter.info.name.clone(),
                what: "timestamps on this queue".to_owned(),
            });
        }
        Ok(())
    }

    /// Commands recorded since the last submit, barriers not counted.
    pub fn recorded(&self) -> usize {
        self.recorded
    }

    /// Lets the next submission start after `ticket` of another recorder of the same device.
    /// A hop between queues costs 11 to 15 µs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timeline of another device or a ticket that was not submitted;
    /// [`Error::DeviceLost`].
    pub fn after(&mut self, timeline: &Timeline, ticket: Ticket) -> Result<(), Error> {
        self.gpu.check()?;
        if !timeline.of(&self.gpu) {
            return Err(invalid("Recorder::after", "the timeline is another device's".to_owned()));
        }
        timeline.known("Recorder::after", ticket)?;
        if ticket.0 > 0 {
            timeline.ensure_signal(ticket.0)?;
            self.after.push((timeline.clone(), ticket.0));
        }
        Ok(())
    }

    /// Sends what was recorded to the GPU. With nothing recorded, returns the last ticket.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said; what was recorded is
    /// then discarded.
    pub fn submit(&mut self) -> Result<Ticket, Error> {
        self.gpu.check()?;
        if self.recorded == 0 && !self.host_barrier {
            return Ok(self.timeline.last_ticket());
        }
        self.submit_open()
    }

    /// As [`submit`](Self::submit), but always as the next ticket, also with nothing recorded, and if the driver refuses
    /// the commands: for a caller that promised the ticket before.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). The ticket completes all the same, unless it is [`Error::DeviceLost`].
    pub fn submit_next(&mut self) -> Result<Ticket, Error> {
        self.gpu.check()?;
        self.submit_open().map_err(|error| match self.submit_open() {
            Ok(_) => error,
            Err(again) => {
                let name = &self.gpu.adapter.info.name;
                tracing::error!("{name}: submitting fails ({error}; {again}): the device counts as lost");
                self.gpu.mark_lost();
                Error::DeviceLost
            }
        })
    }

    fn submit_open(&mut self) -> Result<Ticket, Error> {
        let commands = self.open_batch()?;
        self.finish(commands);
        self.recorded = 0;
        self.host_barrier = false;
        self.bound = vk::Pipeline::null();
        let Some(mut batch) = self.open.take() else {
            return Ok(self.timeline.last_ticket());
        };
        batch.after.append(&mut self.after);
        self.buffers.clear();
        for (before, recording) in &self.closed {
            self.buffers.extend(before.as_ref().map(|batch| batch.commands));
            self.buffers.push(recording.raw());
        }
        self.buffers.push(commands);
        // SAFETY: `commands` is being recorded.
        let ended = unsafe { self.gpu.device.end_command_buffer(commands) }
            .map_err(|e| self.gpu.error("vkEndCommandBuffer", e))
            .and_then(|()| self.timeline.submit(&self.buffers, &batch.after));
        match ended {
            Ok(ticket) => {
                for (before, recording) in self.closed.drain(..) {
                    batch.recordings.push(recording);
                    if let Some(mut before) = before {
                        before.ticket = ticket.0;
                        self.pending.push_back(before);
                    }
                }
                batch.ticket = ticket.0;
                self.pending.push_back(batch);
                Ok(ticket)
            }
            Err(error) => {
                self.open = Some(batch);
                self.discard();
                Err(error)
            }
        }
    }

    /// Forgets what was recorded since the last submit.
    pub(crate) fn discard(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        for batch in closed.into_iter().filter_map(|(before, _)| before).chain(self.open.take()) {
            self.release(batch);
        }
    }

    /// The last ticket that [`submit`](Self::submit) returned.
    pub fn last_ticket(&self) -> Ticket {
        self.timeline.last_ticket()
    }

    /// The last ticket that is complete. Well under a microsecond.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    pub fn completed(&mut self) -> Result<Ticket, Error> {
        let done = self.timeline.completed()?;
        let enough = if self.timeline.has_marker() { COLLECT_AT } else { 1 };
        let finished = self.pending.front().is_some_and(|b| b.ticket <= done.0);
        if finished && self.pending.len() >= enough {
            self.collect()?;
        }
        Ok(done)
    }

    /// Returns when `ticket` is complete; see [`Timeline::wait`].
    ///
    /// # Errors
    /// As [`Timeline::wait`].
    pub fn wait(&mut self, ticket: Ticket) -> Result<(), Error> {
        self.timeline.wait(ticket)?;
        self.completed().map(drop)
    }

    /// Submits what was recorded, and returns when the GPU is done with everything. Afterwards the
    /// driver, too, knows that it is done with every segment, whichever way completion is reported.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`wait`](Self::wait).
    pub fn wait_idle(&mut self) -> Result<(), Error> {
        let last = self.submit()?;
        self.timeline.wait(last)?;
        self.timeline.block(last.0, true)?;
        self.collect()
    }

    /// The progress of this recorder, for other threads.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn check_dispatch(&self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.gpu.check()?;
        const CALL: &str = "Recorder::dispatch";
        let max = self.gpu.adapter.info.capabilities.max_groups;
        if push.len() != pipeline.push_bytes() as usize {
            return Err(invalid(
                CALL,
                format!(
                    "kernel {} takes {} bytes of push constants, not {}",
                    pipeline.name(),
                    pipeline.push_bytes(),
                    push.len()
                ),
            ));
        }
        if groups.iter().zip(max).any(|(&n, max)| n > max) {
            return Err(invalid(
                CALL,
                format!("kernel {}: {groups:?} workgroups, and at most {max:?} are possible", pipeline.name()),
            ));
        }
        if self.transfer || !pipeline.of(&self.gpu) {
            return Err(invalid(
                CALL,
                format!("kernel {} is another device's, or the queue only copies", pipeline.name()),
            ));
        }
        Ok(())
    }

    /// The command buffer to record a command into, with the barrier that was asked for before it.
    pub(crate) fn begin(&mut self) -> Result<vk::CommandBuffer, Error> {
        let commands = self.open_batch()?;
        if std::mem::take(&mut self.barrier) {
            // Never MEMORY_READ or MEMORY_WRITE: they double the price of a barrier.
            let transfer = (
                vk::PipelineStageFlags::TRANSFER,
                vk::AccessFlags::TRANSFER_WRITE,
                vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE,
            );
            let (stages, wrote, uses) = if self.transfer {
                transfer
            } else {
                (
                    transfer.0 | vk::PipelineStageFlags::COMPUTE_SHADER,
                    transfer.1 | vk::AccessFlags::SHADER_WRITE,
                    transfer.2 | vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE,
                )
            };
            self.memory_barrier(commands, stages, wrote, uses);
        }
        Ok(commands)
    }

    /// What a batch ends with: the host's barrier and the marker of its ticket.
    fn finish(&mut self, commands: vk::CommandBuffer) {
        if self.host_barrier {
            let host = vk::PipelineStageFlags::HOST;
            self.memory_barrier(
                commands,
                host,
                if self.transfer {
                    vk::AccessFlags::TRANSFER_WRITE
                } else {
                    vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE
                },
                vk::AccessFlags::HOST_READ,
            );
        }
        if let (Some(functions), Some(buffer)) = (&self.gpu.marker, self.timeline.marker_buffer()) {
            let ticket = self.timeline.last_ticket().0 + 1;
            // SAFETY: the extension is enabled; the buffer has room for the word and lives as long as
            // the timeline. The low half of the ticket is what `Timeline` expects.
            unsafe {
                functions.cmd_write_buffer_marker(
                    commands,
                    vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                    buffer,
                    0,
                    ticket as u32,
                );
            }
        }
    }

    /// A barrier from this queue's stages to `to`.
    fn memory_barrier(
        &self,
        commands: vk::CommandBuffer,
        to: vk::PipelineStageFlags,
        wrote: vk::AccessFlags,
        uses: vk::AccessFlags,
    ) {
        let from = if self.transfer {
            vk::PipelineStageFlags::TRANSFER
        } else {
            vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::COMPUTE_SHADER
        };
        let barrier = vk::MemoryBarrier::default().src_access_mask(wrote).dst_access_mask(uses);
        // SAFETY: `commands` is being recorded on a queue that has these stages.
        unsafe {
            self.gpu.device.cmd_pipeline_barrier(
                commands,
                from,
                to,
                vk::DependencyFlags::empty(),
                &[barrier],
                &[],
                &[],
            );
        }
    }

    /// The command buffer of the open batch, which is opened if there is none.
    pub(crate) fn open_batch(&mut self) -> Result<vk::CommandBuffer, Error> {
        if let Some(batch) = &self.open {
            return Ok(batch.commands);
        }
        let batch = self.next_batch()?;
        let commands = batch.commands;
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not pending; its pool allows the reset that this implies.
        match unsafe { self.gpu.device.begin_command_buffer(commands, &info) } {
            Ok(()) => {
                self.open = Some(batch);
                Ok(commands)
            }
            Err(error) => {
                self.free.push(batch);
                Err(self.gpu.error("vkBeginCommandBuffer", error))
            }
        }
    }

    /// A batch that is not pending: a finished one, else a new one, else, with too many pending, the oldest.
    fn next_batch(&mut self) -> Result<Batch, Error> {
        if self.free.is_empty() && !self.pending.is_empty() {
            self.collect()?;
            if self.free.is_empty() && self.pending.len() >= MAX_PENDING {
                let oldest = self.pending.front().map_or(0, |batch| batch.ticket);
                self.timeline.block(oldest, true)?;
                self.collect()?;
            }
        }
        if let Some(batch) = self.free.pop() {
            return Ok(batch);
        }
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is of this device, and `&mut self` is the only user.
        let buffers = unsafe { self.gpu.device.allocate_command_buffers(&info) }
            .map_err(|e| self.gpu.error("vkAllocateCommandBuffers", e))?;
        Ok(Batch::new(buffers.first().copied().unwrap_or_default()))
    }

    /// Takes back the batches that the driver is done with.
    fn collect(&mut self) -> Result<(), Error> {
        let retired = self.timeline.retired()?;
        while self.pending.front().is_some_and(|b| b.ticket <= retired) {
            if let Some(batch) = self.pending.pop_front() {
                self.release(batch);
            }
        }
        Ok(())
    }

    fn release(&mut self, mut batch: Batch) {
        batch.pipelines.clear();
        batch.recordings.clear();
        batch.after.clear();
        self.free.push(batch);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("recorded", &self.recorded)
            .field("pending", &self.pending.len())
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.gpu.is_hung() {
            // Also after a simulated loss, when the device in fact works on.
            if let Err(error) = self.timeline.block(self.timeline.last_ticket().0, false) {
                tracing::debug!("a recorder is dropped with work pending: {error}");
            }
        }
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: nothing is pending, or the device is lost, after which objects may be destroyed.
        unsafe {
            self.timestamps.destroy(&self.gpu);
            self.spans.destroy(&self.gpu);
            self.gpu.device.destroy_command_pool(self.pool, None);
        }
    }
}

fn nanoseconds(ticks: u64, bits: u32, period: f32) -> u64 {
    let valid = if bits >= 64 { ticks } else { ticks & ((1 << bits) - 1) };
    #[expect(clippy::float_cmp, reason = "the common period, exactly")]
    if period == 1.0 { valid } else { (valid as f64 * f64::from(period)) as u64 }
}

fn invalid(call: &'static str, what: String) -> Error {
    Error::Invalid { call, what }
}

fn check_range(call: &'static str, which: &str, segment: &Segment, offset: u64, bytes: u64) -> Result<(), Error> {
    match offset.checked_add(bytes) {
        Some(end) if end <= segment.bytes() => Ok(()),
        _ => Err(invalid(call, format!("{bytes} bytes at offset {offset} of a {which} of {} bytes", segment.bytes()))),
    }
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
