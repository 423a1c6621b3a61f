//! Compiled kernels.

use std::sync::Arc;

use ash::vk;

use super::layout::Layout;
use crate::device::DeviceShared;

/// What a pipeline may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PipelineOptions {
    /// Invocations of a subgroup; a power of two within the adapter's
    /// [`subgroup_size_min`](crate::Capabilities::subgroup_size_min) and
    /// [`subgroup_size_max`](crate::Capabilities::subgroup_size_max). `None` takes
    /// [`subgroup_size`](crate::Capabilities::subgroup_size).
    pub subgroup_size: Option<u32>,
    /// Every subgroup is full. The workgroup's x size must then be a multiple of the subgroup size.
    /// Kernels with matrix units need it on adapters with several subgroup sizes; ignored where
    /// there is only one.
    pub full_subgroups: bool,
}

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
    /// The name given to [`Gpu::compile`](crate::Gpu::compile).
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Bytes of push constants that a dispatch passes.
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    pub(crate) fn raw(&self) -> vk::Pipeline {
        self.inner.raw
    }

    pub(crate) fn layout(&self) -> vk::PipelineLayout {
        self.inner.layout.raw
    }

    /// The device it was compiled for is this one.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.inner.device, device)
    }

    /// Takes a pipeline of `device` that has this layout.
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
        // SAFETY: the pipeline is of this device, and this was its last handle. Command buffers hold their pipelines until they
        // have run, so the GPU is done with it, or the device is lost, after which objects may be destroyed.
        unsafe { self.device.raw.destroy_pipeline(self.raw, None) };
    }
}
