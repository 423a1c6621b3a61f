//! The driver's report about an adapter, in Vulkan's structures, without features that a driver's
//! fault or a profile hides.

use ash::vk;
use dml_gpu::MatrixShape;

use super::child_query;
use super::features::Features;
use super::kind::kind_of;
use super::matrix;
use super::memory::MemoryLayout;
use super::profile::{Feature, Profile};
use super::properties::Properties;
use super::queue_family::QueueFamily;
use super::quirks::{self, Quirk, Remedy};
use crate::imitated_faults;
use crate::instance::Instance;

/// The source of an adapter's capabilities, memory and queues, and of the features of its devices.
pub(crate) struct Reported {
    pub(crate) features: Features,
    pub(super) properties: Properties,
    pub(super) memory: MemoryLayout,
    pub(super) family: QueueFamily,
    pub(super) shapes: Vec<MatrixShape>,
    /// The driver is known to refuse valid kernels.
    pub(super) refuses_kernels: bool,
    /// The most values of a kernel that the driver is known to compile.
    pub(super) most_values: Option<usize>,
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
        let mut reported = Self {
            features,
            properties,
            memory,
            family,
            shapes: Vec::new(),
            refuses_kernels: false,
            most_values: None,
            tick_scale: None,
        };
        let mut in_a_child = false;
        for Quirk { what, source, remedy, .. } in quirks::of(&reported.properties) {
            tracing::info!("an adapter's driver has a fault, {what} ({source}): {remedy:?}");
            match remedy {
                Remedy::Hide(features) => features.iter().for_each(|&feature| reported.hide(feature)),
                Remedy::AskForMatricesInAChild => in_a_child = true,
                Remedy::CompileFirst => reported.refuses_kernels = true,
                Remedy::MostValues(most) => reported.most_values = Some(*most),
            }
        }
        reported.list_shapes(instance, raw, in_a_child);
        if let Some(profile) = profile {
            reported.take_away(profile);
        }
        Ok(reported)
    }

    /// Asks for the matrix shapes, if there are matrices.
    fn list_shapes(&mut self, instance: &Instance, raw: vk::PhysicalDevice, in_a_child: bool) {
        // A test asks on any adapter.
        if !self.features.cooperative_matrix() && imitated_faults::of_matrix_query().is_none() {
            return;
        }
        let shapes = if in_a_child {
            let listed = child_query::matrices(self.properties.file_identity(), self.properties.v11.device_uuid);
            listed.map(|listed| matrix::shapes(&listed, &self.features))
        } else {
            Some(matrix::query(instance, raw, |listed| matrix::shapes(listed, &self.features)))
        };
        match shapes.filter(|_| self.features.cooperative_matrix()) {
            Some(shapes) => self.shapes = shapes,
            None => self.hide(Feature::CooperativeMatrix),
        }
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
        self.properties.imitated_registers = profile.limits.registers;
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
            Feature::DenormPreserveFloat32 => self.properties.v12.shader_denorm_preserve_float32 = vk::FALSE,
            Feature::CooperativeMatrix => {
                self.features.hide(feature);
                self.shapes.clear();
            }
            Feature::Timestamps => self.family.timestamp_bits = 0,
            other => self.features.hide(other),
        }
    }
}
