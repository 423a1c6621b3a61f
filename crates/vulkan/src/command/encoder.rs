//! Records commands into a command buffer.

use ash::vk;
use dml_gpu::traits::*;

use super::barrier::Barrier;
use super::buffer::CommandBuffer;
use crate::error::Error;
use crate::memory::Segment;
use crate::pipeline::Pipeline;
use crate::vulkan::Vulkan;

/// Records commands into one command buffer: of a [`Recorder`](crate::Recorder)'s next submission,
/// or of a [`Recording`](crate::Recording). Commands start in the order of the calls and may
/// overlap unless a [`barrier`](Self::barrier) separates them.
pub struct Encoder {
    /// Between `vkBeginCommandBuffer` and `vkEndCommandBuffer`: "being recorded" below.
    buffer: CommandBuffer,
    bound: vk::Pipeline,
    /// A barrier was requested, and no command has followed.
    barrier: bool,
    commands: usize,
}

impl Encoder {
    /// Begins a command buffer that is not pending. With `barrier`, its first command comes after
    /// all earlier commands.
    pub(crate) fn begin(
        buffer: CommandBuffer,
        usage: vk::CommandBufferUsageFlags,
        barrier: bool,
    ) -> Result<Self, (CommandBuffer, Error)> {
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: the encoder owns the command buffer and so is the only user of its pool. The
        // buffer is not pending; it is new, or its pool allows the implicit reset.
        match unsafe { buffer.device.raw.begin_command_buffer(buffer.raw, &info) } {
            Ok(()) => Ok(Self { buffer, bound: vk::Pipeline::null(), barrier, commands: 0 }),
            Err(error) => {
                let error = buffer.device.error("vkBeginCommandBuffer", error);
                Err((buffer, error))
            }
        }
    }

    /// Ends the command buffer. If that fails, the buffer must not be submitted, and may be begun
    /// again.
    pub(crate) fn finish(self) -> (CommandBuffer, Result<(), Error>) {
        let Self { buffer, .. } = self;
        // SAFETY: the command buffer is being recorded, and owned here; every command in it is
        // complete.
        let ended = unsafe { buffer.device.raw.end_command_buffer(buffer.raw) }
            .map_err(|e| buffer.device.error("vkEndCommandBuffer", e));
        (buffer, ended)
    }

    /// Writes `data`, which becomes part of the command stream. Intended for less than 4 KiB.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless offset and length are multiples of 4, the length is at most
    /// 65,536, and the range is inside the segment, which must belong to this device;
    /// [`Error::DeviceLost`].
    pub fn update(&mut self, dst: &Segment, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.buffer.device.check()?;
        const CALL: &str = "Encoder::update";
        self.check_range(CALL, "destination", dst, offset, data.len() as u64)?;
        if !offset.is_multiple_of(4) || !data.len().is_multiple_of(4) || data.len() > 65_536 {
            return Err(invalid(
                CALL,
                format!("{} bytes at offset {offset}: multiples of 4 up to 65536 are possible", data.len()),
            ));
        }
        if data.is_empty() {
            return Ok(());
        }
        let commands = self.command();
        // SAFETY: `commands` is being recorded; the buffer belongs to this device; offset, length
        // and range were checked; the call copies `data`. The caller keeps the segment alive until
        // the write is done.
        unsafe {
            self.buffer.device.raw.cmd_update_buffer(commands, dst.buffer, offset, data);
        }
        Ok(())
    }

    /// The number of recorded commands, without barriers and timestamps.
    pub fn recorded(&self) -> usize {
        self.commands
    }

    /// Whether a barrier was requested, and no command has followed.
    pub(crate) fn owes_barrier(&self) -> bool {
        self.barrier
    }

    /// Records the requested barrier now instead of with the next command.
    #[inline]
    pub(crate) fn flush_barrier(&mut self) {
        if std::mem::take(&mut self.barrier) {
            self.record_barrier(Barrier::BETWEEN_COMMANDS);
        }
    }

    /// Makes the writes of all commands so far to mapped memory visible to the host once the
    /// commands are complete.
    pub(crate) fn host_barrier(&mut self) {
        self.record_barrier(Barrier::BEFORE_HOST);
    }

    /// Records a reset of queries.
    ///
    /// # Safety
    /// The pool belongs to this device, lives until the command buffer has run, and contains the
    /// queries. All commands that use them are complete or belong to this queue.
    pub(crate) unsafe fn reset_queries(&mut self, pool: vk::QueryPool, first: u32, count: u32) {
        // SAFETY: the command buffer is being recorded; the rest is the caller's promise.
        unsafe { self.buffer.device.raw.cmd_reset_query_pool(self.buffer.raw, pool, first, count) };
    }

    /// Records a timestamp that is written when all earlier commands are done.
    ///
    /// # Safety
    /// The pool contains timestamps of this device and lives until the command buffer has run; the
    /// query was reset since its last use; the queue has timestamps.
    pub(crate) unsafe fn write_timestamp(&mut self, pool: vk::QueryPool, query: u32) {
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the command buffer is being recorded; the rest is the caller's promise.
        unsafe { self.buffer.device.raw.cmd_write_timestamp(self.buffer.raw, stage, pool, query) };
    }

    /// Records a write of `word` to the start of `buffer`, done when all earlier commands are done.
    /// Requires markers.
    ///
    /// # Safety
    /// The buffer belongs to this device, has room for the word, and lives until the command buffer
    /// has run.
    pub(crate) unsafe fn write_marker(&mut self, buffer: vk::Buffer, word: u32) {
        let Some(functions) = &self.buffer.device.marker else { return };
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the extension is enabled and the command buffer is being recorded; the rest is
        // the caller's promise.
        unsafe { functions.cmd_write_buffer_marker(self.buffer.raw, stage, buffer, 0, word) };
    }

    /// The command buffer for the next command, after the requested barrier.
    #[inline]
    fn command(&mut self) -> vk::CommandBuffer {
        self.flush_barrier();
        self.commands += 1;
        self.buffer.raw
    }

    #[inline]
    fn record_barrier(&mut self, barrier: Barrier) {
        let memory = vk::MemoryBarrier::default().src_access_mask(barrier.wrote).dst_access_mask(barrier.uses);
        // SAFETY: the command buffer is being recorded, for a queue that has the barrier's stages.
        unsafe {
            self.buffer.device.raw.cmd_pipeline_barrier(
                self.buffer.raw,
                barrier.from,
                barrier.to,
                vk::DependencyFlags::empty(),
                &[memory],
                &[],
                &[],
            );
        }
    }

    fn check_dispatch(&self, pipeline: &Pipeline, push: &[u8], base: [u32; 3], groups: [u32; 3]) -> Result<(), Error> {
        let device = &self.buffer.device;
        device.check()?;
        const CALL: &str = "Encoder::dispatch";
        let max = device.adapter.info.capabilities.max_groups;
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
        if (0..3).any(|d| groups[d] > max[d] || base[d] > max[d] - groups[d]) {
            return Err(invalid(
                CALL,
                format!(
                    "kernel {}: {groups:?} workgroups from {base:?} on, and at most {max:?} are possible",
                    pipeline.name()
                ),
            ));
        }
        if !pipeline.is_of(device) {
            return Err(invalid(CALL, format!("kernel {} is another device's", pipeline.name())));
        }
        Ok(())
    }

    fn check_range(
        &self,
        call: &'static str,
        which: &str,
        segment: &Segment,
        offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        if !segment.is_of(&self.buffer.device) {
            return Err(invalid(call, format!("the {which} is another device's")));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > segment.bytes()) {
            let all = segment.bytes();
            return Err(invalid(call, format!("{bytes} bytes at offset {offset} of a {which} of {all} bytes")));
        }
        Ok(())
    }
}

impl dml_gpu::Commands for Encoder {
    type Api = Vulkan;

    fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.dispatch_from(pipeline, push, [0; 3], groups)
    }

    fn dispatch_from(
        &mut self,
        pipeline: &Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error> {
        self.check_dispatch(pipeline, push, base, groups)?;
        if groups.contains(&0) {
            return Ok(());
        }
        let commands = self.command();
        if self.bound != pipeline.raw() {
            self.bound = pipeline.raw();
            self.buffer.pipelines.push(pipeline.clone());
            // SAFETY: `commands` is being recorded, on a queue with compute. The pipeline is a
            // compute pipeline of this device, and `pipelines` keeps it until the commands have
            // run.
            unsafe {
                self.buffer.device.raw.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw());
            }
        }
        let device = &self.buffer.device.raw;
        // SAFETY: `commands` is being recorded and has this pipeline bound, which was made for a
        // base. The constants fill the range of its layout, and the counts including the base are
        // within the limits. The caller who passes addresses ensures that the kernel's accesses are
        // valid ("Not guaranteed" in `lib.rs`).
        unsafe {
            if !push.is_empty() {
                device.cmd_push_constants(commands, pipeline.layout(), vk::ShaderStageFlags::COMPUTE, 0, push);
            }
            if base == [0; 3] {
                device.cmd_dispatch(commands, groups[0], groups[1], groups[2]);
            } else {
                device.cmd_dispatch_base(commands, base[0], base[1], base[2], groups[0], groups[1], groups[2]);
            }
        }
        Ok(())
    }

    fn barrier(&mut self) {
        self.barrier = true;
    }

    fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.buffer.device.check()?;
        const CALL: &str = "Encoder::copy";
        self.check_range(CALL, "source", src, src_offset, bytes)?;
        self.check_range(CALL, "destination", dst, dst_offset, bytes)?;
        if src.buffer == dst.buffer && src_offset.abs_diff(dst_offset) < bytes {
            return Err(invalid(CALL, format!("{bytes} bytes from {src_offset} overlap those from {dst_offset}")));
        }
        if bytes == 0 {
            return Ok(());
        }
        let commands = self.command();
        let region = vk::BufferCopy { src_offset, dst_offset, size: bytes };
        // SAFETY: `commands` is being recorded; both buffers belong to this device and allow
        // copies; the ranges are inside them, not empty, and do not overlap. The caller keeps the
        // segments alive until the copy is done.
        unsafe {
            self.buffer.device.raw.cmd_copy_buffer(commands, src.buffer, dst.buffer, &[region]);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("recorded", &self.commands).finish_non_exhaustive()
    }
}

fn invalid(call: &'static str, what: String) -> Error {
    Error::Invalid { call, what }
}
