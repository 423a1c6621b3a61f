//! Command buffers that are recorded once and run many times.

use std::sync::Arc;

use ash::vk;

use crate::error::Error;
use crate::gpu::GpuCore;
use crate::memory::Segment;
use crate::pipeline::Pipeline;
use crate::recorder::{Batch, Recorder};

/// Commands that [`Recorder::execute`] runs as often as wanted. A clone is another handle.
#[derive(Clone)]
pub struct Recording {
    inner: Arc<Inner>,
}

struct Inner {
    commands: vk::CommandBuffer,
    /// Commands in it, barriers not counted.
    count: usize,
    /// What the commands use.
    _pipelines: Vec<Pipeline>,
    _segments: Vec<Segment>,
    /// Of this recording alone: no lock is needed, and it goes when the recording goes.
    pool: CommandPool,
}

struct CommandPool {
    raw: vk::CommandPool,
    gpu: Arc<GpuCore>,
}

impl CommandPool {
    fn new(gpu: &Arc<GpuCore>) -> Result<Self, Error> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(gpu.compute.family.index);
        // SAFETY: the device is valid and has a queue of this family.
        let raw =
            unsafe { gpu.device.create_command_pool(&info, None) }.map_err(|e| gpu.error("vkCreateCommandPool", e))?;
        Ok(Self { raw, gpu: Arc::clone(gpu) })
    }

    /// A command buffer that may be pending several times, begun.
    fn begin(&self) -> Result<vk::CommandBuffer, Error> {
        let gpu = &self.gpu;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.raw)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is of this device, and its creator is the only user.
        let commands = unsafe { gpu.device.allocate_command_buffers(&info) }
            .map_err(|e| gpu.error("vkAllocateCommandBuffers", e))?
            .first()
            .copied()
            .unwrap_or_default();
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        // SAFETY: the command buffer is new.
        unsafe { gpu.device.begin_command_buffer(commands, &info) }
            .map_err(|e| gpu.error("vkBeginCommandBuffer", e))?;
        Ok(commands)
    }
}

impl Drop for CommandPool {
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: batches hold the recordings that they run until they are complete, so nothing of the pool is pending.
        unsafe { self.gpu.device.destroy_command_pool(self.raw, None) };
    }
}

impl Recording {
    /// Commands in it, barriers not counted.
    pub fn len(&self) -> usize {
        self.inner.count
    }

    /// Whether there is no command in it.
    pub fn is_empty(&self) -> bool {
        self.inner.count == 0
    }

    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.inner.commands
    }

    pub(crate) fn of(&self, gpu: &Arc<GpuCore>) -> bool {
        Arc::ptr_eq(&self.inner.pool.gpu, gpu)
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// What a recording can be made of: methods of [`Recorder`].
#[derive(Debug)]
pub struct Recordable<'r>(&'r mut Recorder);

impl Recordable<'_> {
    /// As [`Recorder::dispatch`].
    ///
    /// # Errors
    /// As [`Recorder::dispatch`].
    pub fn dispatch(&mut self, pipeline: &Pipeline, push: &[u8], groups: [u32; 3]) -> Result<(), Error> {
        self.0.dispatch(pipeline, push, groups)
    }

    /// As [`Recorder::barrier`].
    pub fn barrier(&mut self) {
        self.0.barrier();
    }

    /// As [`Recorder::copy`].
    ///
    /// # Errors
    /// As [`Recorder::copy`].
    pub fn copy(
        &mut self,
        src: &Segment,
        src_offset: u64,
        dst: &Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        self.0.copy(src, src_offset, dst, dst_offset, bytes)
    }
}

impl Recorder {
    /// Makes a recording of what `body` records, which is not run now. It begins with a barrier, so that each run comes after
    /// everything before it; what comes after a run and depends on it needs a barrier of its own. `body` gets
    /// `segments`, which live as long as the recording or a run of it; other segments are the caller's to keep.
    ///
    /// # Errors
    /// What `body` returns; [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said.
    pub fn record<E: From<Error>>(
        &mut self,
        segments: Vec<Segment>,
        body: impl FnOnce(&mut Recordable<'_>, &[Segment]) -> Result<(), E>,
    ) -> Result<Recording, E> {
        self.gpu.check()?;
        let pool = CommandPool::new(&self.gpu)?;
        let commands = pool.begin()?;
        // The stream that is being recorded is set aside.
        let open = self.open.replace(Batch::new(commands));
        let recorded = std::mem::take(&mut self.recorded);
        let bound = std::mem::take(&mut self.bound);
        let barrier = std::mem::replace(&mut self.barrier, true);
        let done = body(&mut Recordable(self), &segments);
        let made = std::mem::replace(&mut self.open, open);
        let count = std::mem::replace(&mut self.recorded, recorded);
        self.bound = bound;
        self.barrier = barrier;
        done?;
        // SAFETY: `commands` is being recorded.
        unsafe { self.gpu.device.end_command_buffer(commands) }.map_err(|e| self.gpu.error("vkEndCommandBuffer", e))?;
        let pipelines = made.map_or_else(Vec::new, |batch| batch.pipelines);
        let inner = Inner { commands, count, _pipelines: pipelines, _segments: segments, pool };
        Ok(Recording { inner: Arc::new(inner) })
    }

    /// Runs a recording after everything that was recorded before. Costs the host next to nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a recording of another device or on a transfer recorder; [`Error::DeviceLost`]; what the
    /// driver said, and what was recorded since the last submit is then discarded.
    pub fn execute(&mut self, recording: &Recording) -> Result<(), Error> {
        self.gpu.check()?;
        if self.transfer || !recording.of(&self.gpu) {
            let what = "the recording is another device's, or the queue only copies".to_owned();
            return Err(Error::Invalid { call: "Recorder::execute", what });
        }
        if recording.is_empty() {
            return Ok(());
        }
        self.barrier = false; // The recording has one.
        self.bound = vk::Pipeline::null();
        let before = self.open.take();
        if let Some(batch) = &before {
            // SAFETY: the command buffer is being recorded.
            if let Err(error) = unsafe { self.gpu.device.end_command_buffer(batch.commands) } {
                self.recorded = 0;
                self.open = before;
                self.discard();
                return Err(self.gpu.error("vkEndCommandBuffer", error));
            }
        }
        self.closed.push((before, recording.clone()));
        self.recorded += recording.len();
        Ok(())
    }
}
