//! A queue, which one thread at a time may use.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ash::vk;

use crate::adapter::QueueFamily;

/// What a queue can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Runs kernels and copies.
    Compute,
    /// Copies only.
    Transfer,
}

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
