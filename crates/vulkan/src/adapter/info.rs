//! What is known of an adapter.

use ash::vk;

use super::capabilities::Capabilities;

/// What sort of GPU an adapter is, in the order in which [`adapters`](crate::adapters) lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU that a virtual machine offers, or one that does not say what it is.
    Virtual,
    /// A driver that runs on the CPU.
    Software,
}

impl AdapterKind {
    pub(super) fn from_vk(device_type: vk::PhysicalDeviceType) -> Self {
        match device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => Self::Discrete,
            vk::PhysicalDeviceType::INTEGRATED_GPU => Self::Integrated,
            vk::PhysicalDeviceType::CPU => Self::Software,
            _ => Self::Virtual,
        }
    }
}

/// What is known of an adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterInfo {
    /// The name that the driver gives it, and the profile behind it if there is one.
    pub name: String,
    /// The other adapter that it imitates (`TORCH_DML_PROFILE`).
    pub profile: Option<&'static str>,
    /// "NVIDIA", "AMD", "Intel", "Qualcomm", ..., or the vendor id in hexadecimal.
    pub vendor: String,
    /// The PCI vendor id, or one of Khronos' own.
    pub vendor_id: u32,
    /// The vendor's device id.
    pub device_id: u32,
    /// What sort of GPU it is.
    pub kind: AdapterKind,
    /// The driver's name.
    pub driver_name: String,
    /// The driver's version as the driver writes it.
    pub driver_info: String,
    /// The driver's version as a number; its meaning is the vendor's.
    pub driver_version: u32,
    /// The Vulkan version of the adapter: major, minor, patch.
    pub api_version: (u32, u32, u32),
    /// Identifies the GPU across processes and APIs.
    pub device_uuid: [u8; 16],
    /// Bytes of memory: the device-local heaps; all heaps for an integrated GPU.
    pub memory_total: u64,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// The name of a PCI vendor id.
pub(super) fn vendor(id: u32) -> String {
    match id {
        0x10DE => "NVIDIA",
        0x1002 => "AMD",
        0x8086 => "Intel",
        0x5143 => "Qualcomm",
        0x13B5 => "ARM",
        0x1010 => "Imagination",
        0x106B => "Apple",
        0x1414 => "Microsoft",
        0x10005 => "Mesa",
        other => return format!("{other:#06x}"),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_have_names() {
        assert_eq!(vendor(0x10DE), "NVIDIA");
        assert_eq!(vendor(0x10005), "Mesa");
        assert_eq!(vendor(0xABCD), "0xabcd");
    }
}
