//! What PyTorch calls the devices, for messages.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CUDAS_PLACE: AtomicBool = AtomicBool::new(false);

/// From now on messages speak of CUDA: in this process the devices are PyTorch's CUDA devices.
pub fn stand_in_for_cuda() {
    IN_CUDAS_PLACE.store(true, Ordering::Relaxed);
}

fn in_cudas_place() -> bool {
    IN_CUDAS_PLACE.load(Ordering::Relaxed)
}

/// The name of the device type at the start of a message, "dml" or "CUDA".
pub fn title() -> &'static str {
    if in_cudas_place() { "CUDA" } else { "dml" }
}

/// A device as PyTorch prints it, "dml:0" or "cuda:0".
pub struct DeviceName(pub usize);

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", if in_cudas_place() { "cuda" } else { "dml" }, self.0)
    }
}
