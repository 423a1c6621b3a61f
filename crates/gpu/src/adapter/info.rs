//! The description of an adapter.

use std::cmp::Ordering;

use super::capabilities::Capabilities;

/// The kind of an adapter, in the order in which [`Api::adapters`](crate::Api::adapters) lists
/// them.
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
    /// One word for users: "discrete", "integrated", "virtual", "software".
    pub fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Software => "software",
        }
    }
}

/// The description of an adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterInfo {
    /// The driver's name for the adapter, followed by the profile if one is imitated.
    pub name: String,
    /// The imitated adapter (`TORCH_DML_PROFILE`).
    pub profile: Option<&'static str>,
    /// [`vendor_name`]: "NVIDIA", "AMD", "Intel", "Qualcomm", ..., or the vendor id in hexadecimal.
    pub vendor: String,
    /// The PCI vendor id, or one of Khronos' own.
    pub vendor_id: u32,
    /// The vendor's device id.
    pub device_id: u32,
    /// The kind of GPU.
    pub kind: AdapterKind,
    /// The driver's name.
    pub driver_name: String,
    /// The driver's version as the driver writes it.
    pub driver_info: String,
    /// The driver's version as a number; its meaning is the vendor's.
    pub driver_version: u32,
    /// The adapter's version of the API: major, minor, patch.
    pub api_version: (u32, u32, u32),
    /// Identifies the GPU across processes and APIs.
    pub device_uuid: [u8; 16],
    /// Bytes of memory: the device-local heaps; all heaps for an integrated GPU.
    pub memory_total: u64,
    /// Its capabilities.
    pub capabilities: Capabilities,
}

impl AdapterInfo {
    /// The order in which adapters are listed: by kind, within a kind by memory, largest first.
    /// Equal adapters keep the order of the system.
    pub fn listing_order(&self, other: &Self) -> Ordering {
        self.kind.cmp(&other.kind).then(other.memory_total.cmp(&self.memory_total))
    }
}

/// The name of a PCI vendor id.
pub fn vendor_name(id: u32) -> String {
    match id {
        0x10DE => "NVIDIA",
        0x1002 => "AMD",
        0x8086 => "Intel",
        0x5143 | 0x4D4F_4351 => "Qualcomm",
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
        assert_eq!(vendor_name(0x10DE), "NVIDIA");
        assert_eq!(vendor_name(0x10005), "Mesa");
        assert_eq!(vendor_name(0xABCD), "0xabcd");
    }

    fn info(name: &str, kind: AdapterKind, gib: u64) -> AdapterInfo {
        AdapterInfo {
            name: name.to_owned(),
            profile: None,
            vendor: String::new(),
            vendor_id: 0,
            device_id: 0,
            kind,
            driver_name: String::new(),
            driver_info: String::new(),
            driver_version: 0,
            api_version: (1, 2, 0),
            device_uuid: [0; 16],
            memory_total: gib << 30,
            capabilities: Capabilities::default(),
        }
    }

    #[test]
    fn adapters_are_sorted_by_kind_then_memory() {
        let mut infos = [
            info("software", AdapterKind::Software, 500),
            info("virtual", AdapterKind::Virtual, 64),
            info("integrated", AdapterKind::Integrated, 32),
            info("small", AdapterKind::Discrete, 8),
            info("big", AdapterKind::Discrete, 24),
            info("big again", AdapterKind::Discrete, 24),
        ];
        infos.sort_by(AdapterInfo::listing_order);
        let names: Vec<&str> = infos.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["big", "big again", "small", "integrated", "virtual", "software"]);
    }
}
