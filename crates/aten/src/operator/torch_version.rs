//! Which PyTorch asks, where the CPU refuses in one release what it takes in another.

use std::sync::atomic::{AtomicU32, Ordering};

/// The minor version of PyTorch 2; before it is known, the oldest that is supported.
static MINOR: AtomicU32 = AtomicU32::new(11);

/// From now on PyTorch 2.`minor` asks.
pub fn set(minor: u32) {
    MINOR.store(minor, Ordering::Relaxed);
}

/// Whether it is PyTorch 2.`minor` or newer.
pub fn at_least(minor: u32) -> bool {
    MINOR.load(Ordering::Relaxed) >= minor
}
