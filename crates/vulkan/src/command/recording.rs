//! Command buffers that are recorded once and run many times.

use std::sync::Arc;

use ash::vk;

use super::buffer::{CommandBuffer, CommandPool};
use super::encoder::Encoder;
use crate::device::DeviceShared;
use crate::error::Error;
use crate::memory::Segment;

/// Commands that [`Recorder::execute`](dml_gpu::Recorder::execute) runs any number of times; made
/// by [`Gpu::record`](dml_gpu::Gpu::record). A clone is another handle.
#[derive(Clone)]
pub struct Recording {
    inner: Arc<Inner>,
}

struct Inner {
    /// From a pool of its own, so no lock is needed, and the pool is destroyed with the recording.
    buffer: CommandBuffer,
    /// The number of commands, without barriers.
    commands: usize,
    /// The objects that the commands use.
    _segments: Arc<[Segment]>,
}

impl Recording {
    /// See [`Gpu::record`](dml_gpu::Gpu::record).
    pub(crate) fn new<E: From<Error>>(
        device: &Arc<DeviceShared>,
        segments: Arc<[Segment]>,
        body: impl FnOnce(&mut Encoder, &[Segment]) -> Result<(), E>,
    ) -> Result<Self, E> {
        device.check()?;
        let pool = CommandPool::new(device, vk::CommandPoolCreateFlags::empty())?;
        // The buffer may be pending several times at once.
        let usage = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
        let mut encoder = Encoder::begin(pool.allocate()?, usage, true).map_err(|(_, error)| error)?;
        body(&mut encoder, &segments)?;
        let commands = encoder.recorded();
        let (buffer, ended) = encoder.finish();
        ended?;
        Ok(Self { inner: Arc::new(Inner { buffer, commands, _segments: segments }) })
    }

    /// The number of commands, without barriers.
    pub fn len(&self) -> usize {
        self.inner.commands
    }

    /// Whether the recording has no commands.
    pub fn is_empty(&self) -> bool {
        self.inner.commands == 0
    }

    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.inner.buffer.raw()
    }

    /// Whether it was recorded for this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.inner.buffer.device, device)
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("len", &self.len()).finish_non_exhaustive()
    }
}
