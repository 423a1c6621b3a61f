//! Vulkan's results as the errors of the interface.

use ash::vk;

pub(crate) use dml_gpu::Error;

/// Maps a `VkResult` of `call`. Device loss and exhausted memory get their own variants.
pub(crate) fn from_vk(call: &'static str, result: vk::Result) -> Error {
    match result {
        vk::Result::ERROR_DEVICE_LOST => Error::DeviceLost,
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            Error::OutOfMemory { requested: 0 }
        }
        other => Error::Driver { call, code: other.as_raw(), name: format!("{other:?}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vk_results_map_to_variants() {
        assert_eq!(from_vk("vkQueueSubmit", vk::Result::ERROR_DEVICE_LOST), Error::DeviceLost);
        assert_eq!(
            from_vk("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
            Error::OutOfMemory { requested: 0 }
        );
        let other = from_vk("vkCreateDevice", vk::Result::ERROR_INITIALIZATION_FAILED);
        assert_eq!(other.to_string(), "vkCreateDevice failed: ERROR_INITIALIZATION_FAILED (-3)");
    }
}
