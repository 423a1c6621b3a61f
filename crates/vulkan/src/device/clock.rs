//! The device's clock, read without the queue.

use ash::{ext, khr, vk};

use crate::adapter::{AdapterShared, Features};

/// Reads the device's clock (`VK_KHR_calibrated_timestamps`, or the same extension under EXT).
#[derive(Clone, Copy)]
pub(crate) struct DeviceClock {
    read: vk::PFN_vkGetCalibratedTimestampsKHR,
}

impl DeviceClock {
    /// `None` if the driver does not offer it.
    pub(super) fn find(adapter: &AdapterShared, device: &ash::Device, features: &Features) -> Option<Self> {
        let (entry, instance) = (&adapter.instance.entry, &adapter.instance.raw);
        // SAFETY: `device` was made from this adapter with the extension that each block asks for,
        // so the instance exports the first function, and the device the second. Both names of the
        // extension have the same types.
        let (domains, read) = unsafe {
            if features.has(khr::calibrated_timestamps::NAME) {
                let functions = khr::calibrated_timestamps::Instance::new(entry, instance);
                (
                    functions.get_physical_device_calibrateable_time_domains(adapter.raw),
                    khr::calibrated_timestamps::Device::new(instance, device).fp().get_calibrated_timestamps_khr,
                )
            } else if features.has(ext::calibrated_timestamps::NAME) {
                let functions = ext::calibrated_timestamps::Instance::new(entry, instance);
                (
                    functions.get_physical_device_calibrateable_time_domains(adapter.raw),
                    ext::calibrated_timestamps::Device::new(instance, device).fp().get_calibrated_timestamps_ext,
                )
            } else {
                return None;
            }
        };
        domains.is_ok_and(|domains| domains.contains(&vk::TimeDomainKHR::DEVICE)).then_some(Self { read })
    }

    /// Ticks of the clock that the timestamps of `device` use; `device` is the device that this was
    /// made for.
    pub(super) fn ticks(self, device: &ash::Device) -> Result<u64, vk::Result> {
        let info = vk::CalibratedTimestampInfoKHR::default().time_domain(vk::TimeDomainKHR::DEVICE);
        let (mut ticks, mut deviation) = (0, 0);
        // SAFETY: the extension is enabled on this device and has this time domain. One info and
        // one result, which live through the call.
        let result = unsafe { (self.read)(device.handle(), 1, &raw const info, &raw mut ticks, &raw mut deviation) };
        if result == vk::Result::SUCCESS { Ok(ticks) } else { Err(result) }
    }
}
