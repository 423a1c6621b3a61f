//! Command buffers and their pools.

use std::sync::Arc;

use ash::vk;

use crate::device::DeviceShared;
use crate::error::Error;
use crate::pipeline::Pipeline;

/// A pool, which lives as long as its command buffers. Only one thread at a time uses the pool and
/// its buffers.
pub(crate) struct CommandPool {
    raw: vk::CommandPool,
    device: Arc<DeviceShared>,
}

/// A command buffer and the objects that must live until it has run.
pub(crate) struct CommandBuffer {
    pub(super) raw: vk::CommandBuffer,
    /// Objects that its commands use.
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) device: Arc<DeviceShared>,
    _pool: Arc<CommandPool>,
}

impl CommandPool {
    /// A pool of the queue's family, whose buffers are used once (`RESET_COMMAND_BUFFER`) or as
    /// `flags` say.
    pub(crate) fn new(device: &Arc<DeviceShared>, flags: vk::CommandPoolCreateFlags) -> Result<Arc<Self>, Error> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(device.queue.family.index).flags(flags);
        // SAFETY: the device is valid and has a queue of this family; `info` lives through the
        // call.
        let raw = unsafe { device.raw.create_command_pool(&info, None) }
            .map_err(|e| device.error("vkCreateCommandPool", e))?;
        Ok(Arc::new(Self { raw, device: Arc::clone(device) }))
    }

    /// A new command buffer. The caller must be the only user of the pool.
    pub(crate) fn allocate(self: &Arc<Self>) -> Result<CommandBuffer, Error> {
        let device = &self.device;
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.raw)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool belongs to this device, and `info` lives through the call. By the
        // caller's promise nobody else uses the pool: its owner is a recorder, which one thread at
        // a time uses, or a recording under construction.
        let buffers = unsafe { device.raw.allocate_command_buffers(&info) }
            .map_err(|e| device.error("vkAllocateCommandBuffers", e))?;
        Ok(CommandBuffer {
            raw: buffers.first().copied().unwrap_or_default(),
            pipelines: Vec::new(),
            device: Arc::clone(device),
            _pool: Arc::clone(self),
        })
    }
}

impl Drop for CommandPool {
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // SAFETY: this is the last handle of the pool, as its command buffers hold it. Submissions
        // hold their command buffers until they are complete, and a recorder waits for its
        // submissions before it releases them. So nothing of the pool is pending, or the device is
        // lost, after which objects may be destroyed.
        unsafe { self.device.raw.destroy_command_pool(self.raw, None) };
    }
}

impl CommandBuffer {
    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.raw
    }

    /// Releases the objects that the commands used. The buffer has run, or was never submitted.
    pub(crate) fn clear(&mut self) {
        self.pipelines.clear();
    }
}
