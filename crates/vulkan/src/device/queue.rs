//! A queue, which only one thread at a time may use.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ash::vk;

use crate::adapter::QueueFamily;

/// The queue of a device: it runs kernels and copies.
pub(crate) struct Queue {
    raw: Mutex<vk::Queue>,
    pub(crate) family: QueueFamily,
}

impl Queue {
    pub(super) fn new(raw: vk::Queue, family: QueueFamily) -> Self {
        Self { raw: Mutex::new(raw), family }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, vk::Queue> {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
