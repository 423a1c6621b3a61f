//! The one error type of every graphics API.

/// The errors of drivers and of the operating system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library that finds drivers (`libvulkan.so.1`, `vulkan-1.dll`, `d3d12.dll`) is not
    /// installed or too old.
    #[error("no {loader} on this machine: {message}")]
    NoLoader {
        /// Its name.
        loader: &'static str,
        /// The system's message.
        message: String,
    },
    /// `TORCH_DML_VALIDATION` asks for the API's validation layer, and it is not installed.
    #[error("TORCH_DML_VALIDATION is set, but {layer} is not installed ({install})")]
    NoValidation {
        /// Its name.
        layer: &'static str,
        /// The package that contains it.
        install: &'static str,
    },
    /// The loader is installed but lists no usable adapter.
    /// [`Api::unsupported_adapters`](crate::Api::unsupported_adapters) gives the reasons.
    #[error("no usable {api} adapter on this machine")]
    NoAdapter {
        /// [`Api::NAME`](crate::Api::NAME).
        api: &'static str,
    },
    /// The adapter lacks a feature that the caller asked for.
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
    /// The adapter does not allow more allocations at a time. Nothing was allocated.
    #[error("the adapter allows {limit} allocations at a time, and they all exist")]
    TooManyAllocations {
        /// The number that it allows.
        limit: u32,
    },
    /// The device was lost (crash, reset, removal, or no progress for `TORCH_DML_TIMEOUT_S`
    /// seconds). Every later call on the same [`Gpu`](crate::Gpu) returns this; other devices and
    /// a fresh [`Adapter::open`](crate::Adapter::open) are not affected.
    #[error("the GPU device was lost")]
    DeviceLost,
    /// The caller broke a rule of the interface (an offset outside a segment, a wrong push constant
    /// size).
    #[error("{call}: {what}")]
    Invalid {
        /// The function of the interface.
        call: &'static str,
        /// The broken rule, with the figures.
        what: String,
    },
    /// The driver returned an error that has no variant of its own.
    #[error("{call} failed: {name} ({code})")]
    Driver {
        /// The API's call.
        call: &'static str,
        /// Its status: a `VkResult`, an `HRESULT`.
        code: i32,
        /// The name of the status.
        name: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {message}")]
    Io {
        /// The file or directory.
        path: String,
        /// The system's message.
        message: String,
    },
}

impl Error {
    /// The failure of an access to a file.
    pub(crate) fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), message: error.to_string() }
    }
}
