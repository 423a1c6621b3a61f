//! The capabilities of an adapter, derived from the driver's report.

use ash::vk;
use dml_gpu::{Capabilities, FloatControls, FloatModes, MatrixElement, MatrixShape};

use super::features::Features;
use super::properties::Properties;
use super::queue_family::QueueFamily;
use super::registers;
use super::vendors::INTEL;

/// The capabilities that follow from a driver's features, properties and queues.
pub(super) fn read(
    features: &Features,
    properties: &Properties,
    memory: &vk::PhysicalDeviceMemoryProperties,
    shapes: Vec<MatrixShape>,
    family: QueueFamily,
) -> Capabilities {
    let limits = &properties.core.limits;
    let operations = properties.v11.subgroup_supported_operations;
    let compute_subgroups = properties.v11.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let on = |flag: vk::Bool32| flag != vk::FALSE;
    let sizes = features
        .subgroup_size_control()
        .then_some((properties.subgroup.min_subgroup_size, properties.subgroup.max_subgroup_size));
    let has_shape = |element: MatrixElement| {
        shapes.iter().any(|s| s.a == element && s.b == element && s.result == MatrixElement::F32)
    };
    Capabilities {
        f16_storage: on(features.v11.storage_buffer16_bit_access),
        i8_storage: on(features.v12.storage_buffer8_bit_access),
        i16: on(features.core.shader_int16),
        f16_arithmetic: on(features.v12.shader_float16),
        f64: on(features.core.shader_float64),
        i64: on(features.core.shader_int64),
        i8_arithmetic: on(features.v12.shader_int8),
        atomics_i64: on(features.v12.shader_buffer_int64_atomics),
        atomics_i64_shared: on(features.v12.shader_shared_int64_atomics),
        atomics_f32_add: on(features.atomic_float.shader_buffer_float32_atomic_add),
        atomics_f32_add_shared: on(features.atomic_float.shader_shared_float32_atomic_add),
        subgroup_size: properties.v11.subgroup_size,
        subgroup_size_min: sizes.map_or(properties.v11.subgroup_size, |s| s.0),
        subgroup_size_max: sizes.map_or(properties.v11.subgroup_size, |s| s.1),
        matrix_subgroup_size: matrix_subgroup_size(properties, sizes),
        registers: registers::of(properties, on(features.core.shader_float64), sizes),
        subgroup_size_control: sizes.is_some()
            && properties.subgroup.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE),
        subgroup_arithmetic: compute_subgroups && operations.contains(vk::SubgroupFeatureFlags::ARITHMETIC),
        subgroup_shuffle: compute_subgroups && operations.contains(vk::SubgroupFeatureFlags::SHUFFLE),
        subgroup_ballot: compute_subgroups && operations.contains(vk::SubgroupFeatureFlags::BALLOT),
        subgroup_extended_types: on(features.v12.shader_subgroup_extended_types),
        max_shared_memory: limits.max_compute_shared_memory_size,
        max_workgroup_invocations: limits.max_compute_work_group_invocations,
        max_workgroup_size: limits.max_compute_work_group_size,
        compute_units: properties.compute_units,
        max_groups: limits.max_compute_work_group_count,
        max_push_constants: limits.max_push_constants_size,
        max_allocation: properties.v11.max_memory_allocation_size.min(properties.max_buffer_size.unwrap_or(u64::MAX)),
        max_buffer: properties.max_buffer_size.unwrap_or(u64::MAX),
        max_allocations: limits.max_memory_allocation_count,
        max_storage_range: u64::from(limits.max_storage_buffer_range),
        matrix: has_shape(MatrixElement::F16),
        bf16_matrix: has_shape(MatrixElement::Bf16),
        matrix_shapes: shapes,
        shared_memory_layout: on(features.shared_layout.workgroup_memory_explicit_layout),
        memory_model: on(features.v12.vulkan_memory_model),
        integer_dot: on(features.integer_dot.shader_integer_dot_product),
        timestamp_period_ns: if family.timestamp_bits == 0 { 0.0 } else { limits.timestamp_period },
        memory_budget: features.has(ash::ext::memory_budget::NAME),
        buffer_marker: features.has(ash::amd::buffer_marker::NAME),
        host_visible_device_memory: host_visible_device_memory(memory),
        float_controls: float_controls(&properties.v12),
        refuses_kernels: false, // No report of the driver says so.
        most_values: None,      // Nor this.
    }
}

/// `sizes`: the smallest and the largest subgroup size, if a pipeline may ask for one.
fn matrix_subgroup_size(properties: &Properties, sizes: Option<(u32, u32)>) -> u32 {
    match sizes {
        Some((smallest, _)) if properties.core.vendor_id == INTEL => smallest,
        _ => properties.v11.subgroup_size,
    }
}

fn host_visible_device_memory(memory: &vk::PhysicalDeviceMemoryProperties) -> bool {
    let both = vk::MemoryPropertyFlags::DEVICE_LOCAL | vk::MemoryPropertyFlags::HOST_VISIBLE;
    memory
        .memory_types_as_slice()
        .iter()
        .filter(|t| t.property_flags.contains(both))
        .filter_map(|t| memory.memory_heaps_as_slice().get(t.heap_index as usize))
        .any(|heap| heap.size > 256 << 20)
}

fn float_controls(v12: &vk::PhysicalDeviceVulkan12Properties<'_>) -> FloatControls {
    use vk::ShaderFloatControlsIndependence as Independence;
    let on = |flag: vk::Bool32| flag != vk::FALSE;
    FloatControls {
        f16: FloatModes {
            denorm_preserve: on(v12.shader_denorm_preserve_float16),
            denorm_flush: on(v12.shader_denorm_flush_to_zero_float16),
            round_to_even: on(v12.shader_rounding_mode_rte_float16),
            signed_zero_inf_nan: on(v12.shader_signed_zero_inf_nan_preserve_float16),
        },
        f32: FloatModes {
            denorm_preserve: on(v12.shader_denorm_preserve_float32),
            denorm_flush: on(v12.shader_denorm_flush_to_zero_float32),
            round_to_even: on(v12.shader_rounding_mode_rte_float32),
            signed_zero_inf_nan: on(v12.shader_signed_zero_inf_nan_preserve_float32),
        },
        f64: FloatModes {
            denorm_preserve: on(v12.shader_denorm_preserve_float64),
            denorm_flush: on(v12.shader_denorm_flush_to_zero_float64),
            round_to_even: on(v12.shader_rounding_mode_rte_float64),
            signed_zero_inf_nan: on(v12.shader_signed_zero_inf_nan_preserve_float64),
        },
        denorm_independent_f32: v12.denorm_behavior_independence != Independence::NONE,
        denorm_independent: v12.denorm_behavior_independence == Independence::ALL,
        rounding_independent_f32: v12.rounding_mode_independence != Independence::NONE,
        rounding_independent: v12.rounding_mode_independence == Independence::ALL,
    }
}
