//! The one error type of the crate.

use ash::vk;

/// What can go wrong between this process and a Vulkan driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The Vulkan loader (`libvulkan.so.1`, `vulkan-1.dll`) is not installed or too old.
    #[error("no Vulkan loader on this machine: {message}")]
    NoLoader {
        /// What the system said.
        message: String,
    },
    /// `TORCH_DML_VALIDATION` asks for the Khronos validation layer, and it is not installed.
    #[error(
        "TORCH_DML_VALIDATION is set, but Vulkan's validation layer is not installed (Debian: vulkan-validationlayers)"
    )]
    NoValidation,
    /// The loader is there, but it lists no adapter that this crate can use.
    /// [`unsupported_adapters`](crate::unsupported_adapters) says what was left out and why.
    #[error("no usable Vulkan adapter on this machine")]
    NoAdapter,
    /// The adapter lacks something that the caller asked for.
    #[error("{adapter} does not support {what}")]
    Unsupported {
        /// The adapter's name.
        adapter: String,
        /// The missing feature.
        what: String,
    },
    /// An allocation found no memory. Nothing was allocated; other allocations remain valid.
    #[error("out of GPU memory: {requested} bytes were asked for")]
    OutOfMemory {
        /// Bytes asked for; 0 when the driver ran out while doing something else.
        requested: u64,
    },
    /// The adapter allows no more allocations at a time (`maxMemoryAllocationCount`). Nothing was allocated.
    #[error("the adapter allows {limit} allocations at a time, and they all exist")]
    TooManyAllocations {
        /// How many it allows.
        limit: u32,
    },
    /// The device was lost (crash, reset, removal, or no progress for `TORCH_DML_TIMEOUT_S`
    /// seconds). Every later call on the same [`Gpu`](crate::Gpu) returns this; other devices and
    /// a fresh [`Adapter::open`](crate::Adapter::open) are not affected.
    #[error("the GPU device was lost")]
    DeviceLost,
    /// The caller broke a rule of this crate (an offset outside a segment, a wrong push constant size).
    #[error("{call}: {what}")]
    Invalid {
        /// The function of this crate.
        call: &'static str,
        /// The broken rule, with the figures.
        what: String,
    },
    /// The driver returned an error that has no variant of its own.
    #[error("{call} failed: {name} ({code})")]
    Driver {
        /// The Vulkan call.
        call: &'static str,
        /// The `VkResult`.
        code: i32,
        /// The name of the `VkResult`.
        name: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {message}")]
    Io {
        /// The file or directory.
        path: String,
        /// What the system said.
        message: String,
    },
}

impl Error {
    /// Maps a `VkResult` of `call`. Device loss and exhausted memory get their own variants.
    pub(crate) fn from_vk(call: &'static str, result: vk::Result) -> Self {
        match result {
            vk::Result::ERROR_DEVICE_LOST => Self::DeviceLost,
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
                Self::OutOfMemory { requested: 0 }
            }
            other => Self::Driver { call, code: other.as_raw(), name: format!("{other:?}") },
        }
    }

    pub(crate) fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vk_results_map_to_variants() {
        assert_eq!(Error::from_vk("vkQueueSubmit", vk::Result::ERROR_DEVICE_LOST), Error::DeviceLost);
        assert_eq!(
            Error::from_vk("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
            Error::OutOfMemory { requested: 0 }
        );
        let other = Error::from_vk("vkCreateDevice", vk::Result::ERROR_INITIALIZATION_FAILED);
        assert_eq!(other.to_string(), "vkCreateDevice failed: ERROR_INITIALIZATION_FAILED (-3)");
    }
}
