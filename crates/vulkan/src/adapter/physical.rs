//! One GPU as one driver lists it.

use std::ffi::{CStr, FromBytesUntilNulError};
use std::sync::Arc;

use ash::vk;
use dml_gpu::{AdapterInfo, AdapterKind, Capabilities, FileIdentity, vendor_name};

use super::capabilities;
use super::features::Features;
use super::heaps;
use super::kind::kind_of;
use super::memory::MemoryLayout;
use super::profile::Profile;
use super::queue_family::QueueFamily;
use super::reported::Reported;
use crate::error::Error;
use crate::instance::Instance;

/// One GPU as one driver lists it.
pub struct Adapter {
    pub(crate) shared: Arc<AdapterShared>,
}

/// The part of an adapter that an opened device keeps.
pub(crate) struct AdapterShared {
    pub(crate) instance: Arc<Instance>,
    pub(crate) raw: vk::PhysicalDevice,
    /// The version of Vulkan that this crate uses on the adapter.
    api: u32,
    profile: Option<&'static Profile>,
    pub(crate) info: AdapterInfo,
    pub(crate) memory: MemoryLayout,
    pub(crate) family: QueueFamily,
    tick_scale: Option<f64>,
    /// The identity of the adapter's files on disk.
    pub(crate) files: FileIdentity,
}

impl Adapter {
    /// The number of bytes that this process can expect to allocate now: the driver's estimate
    /// (`VK_EXT_memory_budget`), or the total if the driver gives none. Takes about 15 µs.
    pub fn memory_free(&self) -> u64 {
        self.shared.memory_free()
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Adapter").field(&self.shared.info).finish()
    }
}

impl AdapterShared {
    /// Reads the driver's description of a GPU; for an unusable GPU, its name and the reason.
    pub(super) fn inspect(
        instance: &Arc<Instance>,
        raw: vk::PhysicalDevice,
        profile: Option<&'static Profile>,
    ) -> Result<Self, (String, String)> {
        // SAFETY: `raw` comes from this instance.
        let basic = unsafe { instance.raw.get_physical_device_properties(raw) };
        let name = text(basic.device_name_as_c_str());
        let leave_out = |why: &str| (name.clone(), why.to_owned());
        let api = basic.api_version;
        if api < vk::API_VERSION_1_2 {
            return Err(leave_out(&format!(
                "Vulkan {}.{}, and 1.2 is needed",
                vk::api_version_major(api),
                vk::api_version_minor(api)
            )));
        }
        let version = (vk::api_version_major(api), vk::api_version_minor(api), vk::api_version_patch(api));
        // Features of a later version must not be used with an instance of an earlier one.
        let api = api.min(instance.api);
        let reported = Reported::read(instance, raw, api, profile).map_err(|why| leave_out(&why))?;
        let Reported { features, properties, memory, family, shapes, refuses_kernels, most_values, tick_scale } =
            reported;
        let kind = kind_of(properties.core.device_type);
        let info = AdapterInfo {
            vendor: vendor_name(basic.vendor_id),
            vendor_id: basic.vendor_id,
            device_id: basic.device_id,
            kind,
            driver_name: text(properties.v12.driver_name_as_c_str()),
            driver_info: text(properties.v12.driver_info_as_c_str()),
            driver_version: basic.driver_version,
            api_version: version,
            device_uuid: properties.v11.device_uuid,
            memory_total: heaps::total_bytes(kind, &memory.properties),
            capabilities: Capabilities {
                refuses_kernels,
                most_values,
                ..capabilities::read(&features, &properties, &memory.properties, shapes, family)
            },
            profile: profile.map(|profile| profile.name),
            name: profile.map_or_else(|| name.clone(), |profile| format!("{name}, profile {}", profile.name)),
        };
        let files = properties.file_identity();
        Ok(Self { instance: Arc::clone(instance), raw, api, profile, info, memory, family, tick_scale, files })
    }

    /// The features that a device of this adapter is opened with.
    pub(crate) fn features(&self) -> Result<Features, Error> {
        let reported = Reported::read(&self.instance, self.raw, self.api, self.profile);
        reported.map(|reported| reported.features).map_err(|why| self.unsupported(format!("Vulkan as before: {why}")))
    }

    /// Ticks of a timestamp of the driver, in the unit that the adapter reports.
    pub(crate) fn ticks(&self, driver: u64) -> u64 {
        self.tick_scale.map_or(driver, |scale| (driver as f64 * scale) as u64)
    }

    /// See [`Adapter::memory_free`].
    pub(crate) fn memory_free(&self) -> u64 {
        if !self.info.capabilities.memory_budget {
            return self.info.memory_total;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: `self.raw` comes from this instance. The adapter has the extension that defines
        // the chained structure, which lives through the call and is read when the chain is gone.
        unsafe { self.instance.raw.get_physical_device_memory_properties2(self.raw, &mut all) };
        heaps::free_bytes(self.info.kind, &self.memory.properties, &budget)
    }

    /// Bytes of the largest segment that is worth trying to allocate.
    pub(crate) fn largest_segment(&self) -> u64 {
        let limit = if self.info.kind == AdapterKind::Software {
            self.info.capabilities.max_allocation
        } else {
            // Drivers guarantee about 4 GiB and give more, and a single allocation may well be
            // larger.
            self.info.capabilities.max_buffer
        };
        limit.min(heaps::largest(&self.memory.properties))
    }

    /// The error for a caller that asked for a missing feature.
    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { adapter: self.info.name.clone(), what: what.into() }
    }
}

fn text(bytes: Result<&CStr, FromBytesUntilNulError>) -> String {
    bytes.map_or_else(|_| "unnamed".to_owned(), |s| s.to_string_lossy().into_owned())
}
