//! The property structures of an adapter, queried in one call.

use ash::{amd, arm, nv, vk};
use dml_gpu::{FileIdentity, RegisterFile};

use super::features::Features;
use crate::instance::Instance;

/// The properties that determine [`Capabilities`](super::Capabilities) and the adapter's name.
pub(super) struct Properties {
    pub(super) core: vk::PhysicalDeviceProperties,
    pub(super) v11: vk::PhysicalDeviceVulkan11Properties<'static>,
    pub(super) v12: vk::PhysicalDeviceVulkan12Properties<'static>,
    pub(super) subgroup: vk::PhysicalDeviceSubgroupSizeControlProperties<'static>,
    pub(super) max_buffer_size: Option<u64>,
    /// Present if the driver reports it.
    pub(super) compute_units: Option<u32>,
    /// 32-bit registers of a workgroup, which one of AMD's compute units runs. Present if the
    /// driver reports them.
    pub(super) amd_registers: Option<u32>,
    /// The registers of an imitated adapter.
    pub(super) imitated_registers: Option<RegisterFile>,
}

impl Properties {
    /// Reads the properties of an adapter of Vulkan 1.2 or later.
    pub(super) fn query(instance: &ash::Instance, device: vk::PhysicalDevice, features: &Features) -> Self {
        let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
        let mut subgroup = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut v11).push_next(&mut v12);
        if features.knows_subgroup_size_control() {
            all = all.push_next(&mut subgroup);
        }
        if features.knows_maintenance4() {
            all = all.push_next(&mut maintenance4);
        }
        let mut nvidia = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        if features.has(nv::shader_sm_builtins::NAME) {
            all = all.push_next(&mut nvidia);
        }
        let mut amd = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
        if features.has(amd::shader_core_properties::NAME) {
            all = all.push_next(&mut amd);
        }
        let mut arm = vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM::default();
        if features.has(arm::shader_core_builtins::NAME) {
            all = all.push_next(&mut arm);
        }
        // SAFETY: `device` comes from `instance`; each chained structure is defined by its version
        // or extensions, is in the chain once, and lives through the call. The pointers between the
        // structures are cleared below.
        unsafe { instance.get_physical_device_properties2(device, &mut all) };
        let core = all.properties;
        // Properties that were not queried are 0.
        let arrays = amd.shader_engine_count.saturating_mul(amd.shader_arrays_per_engine_count);
        let units =
            [nvidia.shader_sm_count, arrays.saturating_mul(amd.compute_units_per_shader_array), arm.shader_core_count];
        v11.p_next = std::ptr::null_mut();
        v12.p_next = std::ptr::null_mut();
        subgroup.p_next = std::ptr::null_mut();
        Self {
            core,
            v11,
            v12,
            subgroup,
            max_buffer_size: features
                .knows_maintenance4()
                .then_some(maintenance4.max_buffer_size)
                .filter(|&bytes| bytes > 0),
            // The driver counts registers of subgroups of 64.
            amd_registers: Some(amd.vgprs_per_simd.saturating_mul(amd.simd_per_compute_unit).saturating_mul(64))
                .filter(|&words| words > 0),
            imitated_registers: None,
            compute_units: units.into_iter().find(|&units| units > 0),
        }
    }

    /// The identity of the adapter's files on disk.
    pub(super) fn file_identity(&self) -> FileIdentity {
        FileIdentity {
            vendor: self.core.vendor_id,
            device: self.core.device_id,
            driver: self.core.driver_version,
            uuid: self.core.pipeline_cache_uuid,
        }
    }

    /// The properties of a driver that does not promise to keep subnormal numbers.
    pub(super) fn hide_denorm_preserve(&mut self) {
        self.v12.shader_denorm_preserve_float16 = vk::FALSE;
        self.v12.shader_denorm_preserve_float32 = vk::FALSE;
        self.v12.shader_denorm_preserve_float64 = vk::FALSE;
    }

    /// The properties of a driver that promises nothing about floats.
    pub(super) fn hide_float_controls(&mut self) {
        self.hide_denorm_preserve();
        let v12 = &mut self.v12;
        for flag in [
            &mut v12.shader_signed_zero_inf_nan_preserve_float16,
            &mut v12.shader_signed_zero_inf_nan_preserve_float32,
            &mut v12.shader_signed_zero_inf_nan_preserve_float64,
            &mut v12.shader_denorm_flush_to_zero_float16,
            &mut v12.shader_denorm_flush_to_zero_float32,
            &mut v12.shader_denorm_flush_to_zero_float64,
            &mut v12.shader_rounding_mode_rte_float16,
            &mut v12.shader_rounding_mode_rte_float32,
            &mut v12.shader_rounding_mode_rte_float64,
        ] {
            *flag = vk::FALSE;
        }
        v12.denorm_behavior_independence = vk::ShaderFloatControlsIndependence::NONE;
        v12.rounding_mode_independence = vk::ShaderFloatControlsIndependence::NONE;
    }
}

/// The UUID of a device, which is the same in every process.
pub(super) fn uuid_of(instance: &Instance, device: vk::PhysicalDevice) -> [u8; vk::UUID_SIZE] {
    let mut ids = vk::PhysicalDeviceIDProperties::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
    // SAFETY: `device` comes from `instance`, of Vulkan 1.1 or later, which defines the chained
    // structure. It lives through the call.
    unsafe { instance.raw.get_physical_device_properties2(device, &mut all) };
    ids.device_uuid
}
