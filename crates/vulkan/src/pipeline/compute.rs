//! Compiled kernels.

use std::sync::Arc;

use ash::vk;

use super::layout::Layout;
use crate::device::DeviceShared;

/// A compiled kernel. A clone is another handle of the same kernel.
#[derive(Clone)]
pub struct Pipeline {
    inner: Arc<Inner>,
}

struct Inner {
    device: Arc<DeviceShared>,
    raw: vk::Pipeline,
    layout: Arc<Layout>,
    push_bytes: u32,
    name: String,
}

impl Pipeline {
    /// The name that it was compiled under.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The number of bytes of push constants in a dispatch.
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    pub(crate) fn device(&self) -> &DeviceShared {
        &self.inner.device
    }

    pub(crate) fn raw(&self) -> vk::Pipeline {
        self.inner.raw
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.inner.layout.raw
    }

    /// Whether it was compiled for this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.inner.device, device)
    }

    /// Takes ownership of a pipeline of `device` with this layout.
    pub(super) fn new(
        device: &Arc<DeviceShared>,
        raw: vk::Pipeline,
        layout: Arc<Layout>,
        push_bytes: u32,
        name: &str,
    ) -> Self {
        Self { inner: Arc::new(Inner { device: Arc::clone(device), raw, layout, push_bytes, name: name.to_owned() }) }
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("name", &self.inner.name)
            .field("push_bytes", &self.inner.push_bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // SAFETY: the pipeline belongs to this device, and this was its last handle. Command
        // buffers hold their pipelines until they have run, so the GPU is done with it, or the
        // device is lost, after which objects may be destroyed.
        unsafe { self.device.raw.destroy_pipeline(self.raw, None) };
    }
}
