//! The version of PyTorch, for errors of the CPU's that depend on the release.

use std::sync::atomic::{AtomicU32, Ordering};

/// The minor version of PyTorch 2; until it is set, the oldest supported version.
static MINOR: AtomicU32 = AtomicU32::new(11);

/// Sets the version to PyTorch 2.`minor`.
pub fn set(minor: u32) {
    MINOR.store(minor, Ordering::Relaxed);
}

/// Whether it is PyTorch 2.`minor` or newer.
pub fn at_least(minor: u32) -> bool {
    MINOR.load(Ordering::Relaxed) >= minor
}
