//! The name of the devices in PyTorch, for messages.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

static PRESENTED_AS_CUDA: AtomicBool = AtomicBool::new(false);

/// Makes messages name CUDA from now on: in this process the devices are PyTorch's CUDA devices.
pub fn present_as_cuda() {
    PRESENTED_AS_CUDA.store(true, Ordering::Relaxed);
}

fn in_cudas_place() -> bool {
    PRESENTED_AS_CUDA.load(Ordering::Relaxed)
}

/// The name of the device type at the start of a message, "dml" or "CUDA".
pub fn device_type_name() -> &'static str {
    if in_cudas_place() { "CUDA" } else { "dml" }
}

/// A device as PyTorch prints it, "dml:0" or "cuda:0".
pub struct DeviceName(pub usize);

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", if in_cudas_place() { "cuda" } else { "dml" }, self.0)
    }
}
