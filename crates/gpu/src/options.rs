//! Options of devices and pipelines.

use std::path::PathBuf;
use std::time::Duration;

use dml_environment::TIMEOUT;

/// The default limit of a wait without progress.
const TIMEOUT_IF_UNSET: Duration = Duration::from_secs(300);

/// The options for opening a device.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The folder of the disk cache, with the compiled pipelines; `None` means
    /// `TORCH_DML_CACHE_DIR`, else `torch-dml` in the user's cache directory.
    pub cache_dir: Option<PathBuf>,
    /// The duration of a wait without progress after which the device counts as lost; `None` means
    /// `TORCH_DML_TIMEOUT_S` seconds, else 300.
    pub timeout: Option<Duration>,
}

impl OpenOptions {
    /// [`timeout`](Self::timeout), or its default.
    pub fn wait_limit(&self) -> Duration {
        self.timeout.or_else(|| TIMEOUT.get()).unwrap_or(TIMEOUT_IF_UNSET)
    }
}

/// Options of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PipelineOptions {
    /// The driver's compiler optimises. Without it, some drivers compile what they refuse
    /// otherwise.
    pub optimised: bool,
    /// Invocations of a subgroup; a power of two within the adapter's
    /// [`subgroup_size_min`](crate::Capabilities::subgroup_size_min) and
    /// [`subgroup_size_max`](crate::Capabilities::subgroup_size_max). `None` takes
    /// [`subgroup_size`](crate::Capabilities::subgroup_size).
    pub subgroup_size: Option<u32>,
    /// Every subgroup is full. The workgroup's x size must then be a multiple of the subgroup size.
    /// Kernels with matrix units need this on adapters with several subgroup sizes; it has no
    /// effect on adapters with one.
    pub full_subgroups: bool,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self { optimised: true, subgroup_size: None, full_subgroups: false }
    }
}
