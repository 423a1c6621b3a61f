//! Timeline semaphores.

use std::sync::Arc;
use std::time::Duration;

use ash::vk;
use dml_environment::DRY_RUN;

use crate::device::DeviceShared;
use crate::error::Error;

/// A counter that submissions raise and the host reads.
pub(super) struct TimelineSemaphore {
    raw: vk::Semaphore,
    device: Arc<DeviceShared>,
}

impl TimelineSemaphore {
    /// A semaphore with the value 0.
    pub(super) fn new(device: &Arc<DeviceShared>) -> Result<Self, Error> {
        let mut ty =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut ty);
        // SAFETY: the device is valid and has timeline semaphores; `info` lives through the call.
        let raw =
            unsafe { device.raw.create_semaphore(&info, None) }.map_err(|e| device.error("vkCreateSemaphore", e))?;
        Ok(Self { raw, device: Arc::clone(device) })
    }

    pub(super) fn raw(&self) -> vk::Semaphore {
        self.raw
    }

    /// The current value.
    pub(super) fn value(&self) -> Result<u64, Error> {
        const CALL: &str = "vkGetSemaphoreCounterValue";
        let device = &self.device;
        // SAFETY: the semaphore is a timeline semaphore of this device, and lives as long as
        // `self`.
        let value = unsafe { device.raw.get_semaphore_counter_value(self.raw) }.map_err(|e| device.error(CALL, e))?;
        if value == u64::MAX {
            if DRY_RUN.get() == Some(true) {
                // Of a kernel interface that does nothing, drivers read a counter that nobody
                // wrote.
                return Ok(0);
            }
            // Some drivers report the largest value when the device is lost.
            return Err(device.error(CALL, vk::Result::ERROR_DEVICE_LOST));
        }
        Ok(value)
    }

    /// Blocks until the value is at least `value`: true; or for `most`: false.
    pub(super) fn wait(&self, value: u64, most: Duration) -> Result<bool, Error> {
        let (semaphores, values) = ([self.raw], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let nanoseconds = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: as in `value`; `info` and the arrays behind it live through the call.
        match unsafe { self.device.raw.wait_semaphores(&info, nanoseconds) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(self.device.error("vkWaitSemaphores", error)),
        }
    }
}

impl Drop for TimelineSemaphore {
    fn drop(&mut self) {
        // The recorder waited for all submits before it released its timeline, or the device is
        // lost or hung, when the semaphore is leaked. Recorders whose submits wait for it hold a
        // handle until those submits are complete.
        self.device.retire(self.raw);
    }
}
