//! The state that every object of an opened device holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ash::{amd, khr, vk};

use super::clock::DeviceClock;
use super::ledger::Ledger;
use super::logical::LogicalDevice;
use super::queue::Queue;
use crate::adapter::AdapterShared;
use crate::error::{Error, from_vk};

pub(crate) struct DeviceShared {
    pub(crate) raw: ash::Device,
    pub(crate) adapter: Arc<AdapterShared>,
    pub(crate) queue: Queue,
    pub(crate) marker: Option<amd::buffer_marker::Device>,
    pub(crate) full_subgroups: bool,
    /// Queries of compiled pipelines, if the driver has them and the program asks for them.
    pub(crate) executables: Option<khr::pipeline_executable_properties::Device>,
    /// The accounting of the device's segments.
    pub(crate) ledger: Arc<Ledger>,
    /// How long a wait lasts without progress before the device counts as lost.
    pub(crate) timeout: Duration,
    clock: Option<DeviceClock>,
    /// Semaphores that are not needed any more, kept until the device closes.
    retired: Mutex<Vec<vk::Semaphore>>,
    lost: AtomicBool,
    hung: AtomicBool,
}

impl DeviceShared {
    pub(crate) fn open(adapter: &Arc<AdapterShared>, timeout: Duration) -> Result<Arc<Self>, Error> {
        let logical = LogicalDevice::open(adapter)?;
        Ok(Arc::new(Self {
            adapter: Arc::clone(adapter),
            queue: Queue::new(logical.queue, adapter.family),
            marker: logical.marker,
            full_subgroups: logical.full_subgroups,
            executables: logical.executables,
            ledger: Arc::default(),
            timeout,
            clock: logical.clock,
            retired: Mutex::default(),
            lost: AtomicBool::new(false),
            hung: AtomicBool::new(false),
            raw: logical.device,
        }))
    }

    /// Ticks of the device's clock; `None` if the driver cannot read it.
    pub(crate) fn clock_ticks(&self) -> Option<Result<u64, Error>> {
        let clock = self.clock?;
        let ticks = clock.ticks(&self.raw).map_err(|e| self.error("vkGetCalibratedTimestamps", e));
        Some(ticks.map(|ticks| self.adapter.ticks(ticks)))
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Fails if the device is lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::DeviceLost);
        }
        Ok(())
    }

    pub(crate) fn mark_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    /// The GPU did not finish in time: objects that it may still use are leaked.
    pub(crate) fn mark_hung(&self) {
        self.hung.store(true, Ordering::Relaxed);
        self.mark_lost();
    }

    pub(crate) fn is_hung(&self) -> bool {
        self.hung.load(Ordering::Relaxed)
    }

    /// Keeps a semaphore that no submission uses any more. It is destroyed when the device closes,
    /// because Mesa's queue thread (22.3) may still access a semaphore whose value a wait has
    /// already seen.
    pub(crate) fn retire(&self, semaphore: vk::Semaphore) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(semaphore);
    }

    /// Maps a `VkResult`. Records the loss of the device, and the size of a failed allocation.
    pub(crate) fn error_of(&self, call: &'static str, result: vk::Result, bytes: u64) -> Error {
        match from_vk(call, result) {
            Error::DeviceLost => {
                if !self.is_lost() {
                    tracing::error!("{}: device lost in {call}", self.adapter.info.name);
                }
                self.mark_lost();
                Error::DeviceLost
            }
            Error::OutOfMemory { .. } => Error::OutOfMemory { requested: bytes },
            other => other,
        }
    }

    pub(crate) fn error(&self, call: &'static str, result: vk::Result) -> Error {
        self.error_of(call, result, 0)
    }
}

impl Drop for DeviceShared {
    fn drop(&mut self) {
        // The GPU may still use the semaphores of a hung device; a lost device needs no cleanup.
        if self.is_hung() || self.is_lost() {
            return;
        }
        // SAFETY: the queue belongs to this device and is locked. It is idle, as every recorder
        // waited for its work, so this does not block.
        if let Err(error) = unsafe { self.raw.queue_wait_idle(*self.queue.lock()) } {
            tracing::debug!("vkQueueWaitIdle failed: {error:?}");
            return;
        }
        for semaphore in self.retired.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: the semaphore belongs to this device and has no other owner. The queue is
            // idle, so nothing waits for the semaphore or signals it.
            unsafe { self.raw.destroy_semaphore(semaphore, None) };
        }
        let logical = LogicalDevice {
            device: self.raw.clone(),
            queue: *self.queue.lock(),
            marker: self.marker.take(),
            clock: self.clock,
            full_subgroups: self.full_subgroups,
            executables: self.executables.take(),
        };
        logical.close(&self.adapter);
    }
}
