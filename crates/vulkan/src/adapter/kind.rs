//! The kind of an adapter.

use ash::vk;
use dml_gpu::AdapterKind;

pub(super) fn kind_of(device_type: vk::PhysicalDeviceType) -> AdapterKind {
    match device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => AdapterKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => AdapterKind::Integrated,
        vk::PhysicalDeviceType::CPU => AdapterKind::Software,
        _ => AdapterKind::Virtual,
    }
}
