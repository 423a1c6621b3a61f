//! The driver's side of a device, without its owner.
//!
//! It outlives its owner and is reused by the next one: a device is never destroyed. NVIDIA's
//! driver (580.159) sometimes hangs in `vkDestroyDevice` while other threads use other devices: it
//! holds the loader's lock and joins one of its worker threads that spins.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ash::{amd, khr, vk};

use super::clock::DeviceClock;
use crate::adapter::AdapterShared;
use crate::error::{Error, from_vk};

/// The result of `vkCreateDevice`, and properties that are queried once.
pub(super) struct LogicalDevice {
    pub(super) device: ash::Device,
    pub(super) queue: vk::Queue,
    pub(super) marker: Option<amd::buffer_marker::Device>,
    pub(super) clock: Option<DeviceClock>,
    pub(super) full_subgroups: bool,
    pub(super) executables: Option<khr::pipeline_executable_properties::Device>,
}

/// Closed devices and their adapters, which live as long as the process.
static CLOSED: Mutex<Vec<(vk::PhysicalDevice, LogicalDevice)>> = Mutex::new(Vec::new());

fn closed() -> MutexGuard<'static, Vec<(vk::PhysicalDevice, LogicalDevice)>> {
    CLOSED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogicalDevice {
    /// A closed device, or else a new one.
    pub(super) fn open(adapter: &AdapterShared) -> Result<Self, Error> {
        let mut closed = closed();
        let Some(at) = closed.iter().rposition(|(of, _)| *of == adapter.raw) else {
            drop(closed);
            return Self::create(adapter);
        };
        Ok(closed.swap_remove(at).1)
    }

    /// Keeps a working device without objects and without work for the next owner.
    pub(super) fn close(self, adapter: &AdapterShared) {
        closed().push((adapter.raw, self));
    }

    fn create(adapter: &AdapterShared) -> Result<Self, Error> {
        let instance = &adapter.instance.raw;
        let features = adapter.features()?;

        let priority = [1.0];
        let family = adapter.family.index;
        let queue = vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priority);
        let names: Vec<_> = features.extensions().iter().map(|n| n.as_ptr()).collect();
        let mut chain = features.copy_unchained();
        let create = vk::DeviceCreateInfo::default()
            .queue_create_infos(std::slice::from_ref(&queue))
            .enabled_extension_names(&names)
            .enabled_features(&features.core);
        let create = chain.chain_device(create);
        // SAFETY: the adapter belongs to this instance and offers every extension and feature that
        // is enabled here: `features` are those that it reported, or fewer. It has a queue of the
        // family; everything that `create` points to lives through the call.
        let device =
            unsafe { instance.create_device(adapter.raw, &create, None) }.map_err(|e| from_vk("vkCreateDevice", e))?;
        // SAFETY: the device was just created, with one queue of this family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let marker = features.has(amd::buffer_marker::NAME).then(|| amd::buffer_marker::Device::new(instance, &device));
        let executables =
            features.reports_executables().then(|| khr::pipeline_executable_properties::Device::new(instance, &device));
        Ok(Self {
            queue,
            marker,
            executables,
            clock: DeviceClock::find(adapter, &device, &features),
            full_subgroups: features.full_subgroups(),
            device,
        })
    }
}
