//! Pipeline layouts, which differ only in the size of the push constants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;

use crate::device::DeviceShared;
use crate::error::Error;

/// A layout with push constants of this size and nothing else.
pub(super) struct Layout {
    pub(super) raw: vk::PipelineLayout,
    device: Arc<DeviceShared>,
}

impl Layout {
    fn new(device: &Arc<DeviceShared>, push_bytes: u32) -> Result<Self, Error> {
        let range = vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(push_bytes);
        let ranges = if push_bytes == 0 { &[] } else { std::slice::from_ref(&range) };
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(ranges);
        // SAFETY: the device is valid; `info` and the range behind it live through the call. The
        // compiler checked the size.
        let raw = unsafe { device.raw.create_pipeline_layout(&info, None) }
            .map_err(|e| device.error("vkCreatePipelineLayout", e))?;
        Ok(Self { raw, device: Arc::clone(device) })
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        if self.device.is_hung() {
            return;
        }
        // SAFETY: the layout belongs to this device, and this was its last handle. Its pipelines
        // hold it, and command buffers hold the pipelines until they have run.
        unsafe { self.device.raw.destroy_pipeline_layout(self.raw, None) };
    }
}

/// The layouts of a device by size.
#[derive(Default)]
pub(super) struct Layouts {
    by_size: Mutex<HashMap<u32, Arc<Layout>>>,
}

impl Layouts {
    pub(super) fn get(&self, device: &Arc<DeviceShared>, push_bytes: u32) -> Result<Arc<Layout>, Error> {
        let mut known = self.by_size.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = known.get(&push_bytes) {
            return Ok(Arc::clone(layout));
        }
        let layout = Arc::new(Layout::new(device, push_bytes)?);
        known.insert(push_bytes, Arc::clone(&layout));
        Ok(layout)
    }
}
