//! The driver's report about an adapter, in Vulkan's structures, without features that a driver's
//! fault or a profile hides.

use ash::vk;
use dml_gpu::MatrixShape;

use super::features::Features;
use super::kind::kind_of;
use super::matrix;
use super::memory::MemoryLayout;
use super::profile::{Feature, Profile};
use super::properties::Properties;
use super::queue_family::QueueFamily;
use super::quirks;
use crate::instance::Instance;

/// The source of an adapter's capabilities, memory and queues, and of the features of its devices.
pub(crate) struct Reported {
    pub(crate) features: Features,
    pub(super) properties: Properties,
    pub(super) memory: MemoryLayout,
    pub(super) family: QueueFamily,
    pub(super) shapes: Vec<MatrixShape>,
    /// The number of ticks of the imitated timestamps in one tick of the driver's.
    pub(super) tick_scale: Option<f64>,
}

impl Reported {
    /// Queries the driver of a GPU with Vulkan 1.2 or later; returns the reason if the GPU cannot
    /// be used.
    pub(crate) fn read(
        instance: &Instance,
        raw: vk::PhysicalDevice,
        api: u32,
        profile: Option<&Profile>,
    ) -> Result<Self, String> {
        let api = profile.map_or(api, |profile| profile.api.min(api));
        let features =
            Features::query(&instance.raw, raw, api).map_err(|e| format!("its features cannot be read: {e:?}"))?;
        if let Some(missing) = features.missing() {
            return Err(missing.to_owned());
        }
        // SAFETY: `raw` comes from this instance.
        let families = unsafe { instance.raw.get_physical_device_queue_family_properties(raw) };
        let family = QueueFamily::choose(&families).ok_or("no compute queue")?;
        // SAFETY: `raw` comes from this instance.
        let memory = unsafe { instance.raw.get_physical_device_memory_properties(raw) };
        let properties = Properties::query(&instance.raw, raw, &features);
        let kind = kind_of(properties.core.device_type);
        let memory = MemoryLayout::of_driver(kind, memory);
        let mut reported = Self { features, properties, memory, family, shapes: Vec::new(), tick_scale: None };
        for quirk in quirks::of(&reported.properties) {
            tracing::info!(
                "an adapter's driver has a fault, {} ({}): not used: {:?}",
                quirk.what,
                quirk.source,
                quirk.hides
            );
            quirk.hides.iter().for_each(|&feature| reported.hide(feature));
        }
        reported.shapes = matrix::shapes(instance, raw, &reported.features);
        if let Some(profile) = profile {
            reported.take_away(profile);
        }
        Ok(reported)
    }

    /// Removes everything that a profile does not have.
    fn take_away(&mut self, profile: &Profile) {
        let memory_budget = profile.memory.map(|_| Feature::MemoryBudget); // The driver knows nothing of imitated heaps.
        for &feature in profile.lacks.iter().chain(&memory_budget) {
            self.hide(feature);
        }
        let limits = &mut self.properties.core.limits;
        let lower = |value: &mut u32, most: u32| *value = most.min(*value);
        lower(&mut limits.max_compute_work_group_invocations, profile.limits.invocations);
        for (value, most) in limits.max_compute_work_group_size.iter_mut().zip(profile.limits.workgroup) {
            lower(value, most);
        }
        lower(&mut limits.max_compute_shared_memory_size, profile.limits.shared_memory);
        lower(&mut limits.max_push_constants_size, profile.limits.push_constants);
        lower(&mut limits.max_storage_buffer_range, profile.limits.storage_range);
        lower(&mut limits.max_memory_allocation_count, profile.limits.allocations);
        let allocation = &mut self.properties.v11.max_memory_allocation_size;
        *allocation = profile.limits.allocation.min(*allocation);
        let buffer = self.properties.max_buffer_size.unwrap_or(u64::MAX);
        self.properties.max_buffer_size = Some(profile.limits.allocation.min(buffer));
        if let Some(period) = profile.limits.timestamp_period {
            self.tick_scale = Some(f64::from(limits.timestamp_period) / f64::from(period));
            limits.timestamp_period = period;
        }
        if let Some(shape) = &profile.memory {
            self.memory.imitate(shape);
        }
    }

    fn hide(&mut self, feature: Feature) {
        use vk::SubgroupFeatureFlags as Subgroup;
        let operations = &mut self.properties.v11.subgroup_supported_operations;
        match feature {
            Feature::SubgroupArithmetic => *operations &= !(Subgroup::ARITHMETIC | Subgroup::CLUSTERED),
            Feature::SubgroupShuffle => {
                *operations &= !(Subgroup::SHUFFLE | Subgroup::SHUFFLE_RELATIVE | Subgroup::BALLOT);
            }
            Feature::FloatControls => self.properties.hide_float_controls(),
            Feature::DenormPreserve => self.properties.hide_denorm_preserve(),
            Feature::CooperativeMatrix => {
                self.features.hide(feature);
                self.shapes.clear();
            }
            Feature::Timestamps => self.family.timestamp_bits = 0,
            other => self.features.hide(other),
        }
    }
}
