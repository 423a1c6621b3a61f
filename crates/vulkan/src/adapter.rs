//! Adapters: what is installed, in which order.

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk;

use crate::capabilities::{self, Capabilities, Properties};
use crate::error::Error;
use crate::extensions::Features;
use crate::gpu::{Gpu, OpenOptions, RawDevice};
use crate::instance::Instance;
use crate::memory;

/// What sort of GPU an adapter is, in the order in which [`adapters`] lists them.
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

/// What is known of an adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterInfo {
    /// The name that the driver gives it.
    pub name: String,
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

/// One GPU as one driver lists it.
pub struct Adapter {
    pub(crate) core: Arc<AdapterCore>,
}

/// The part of an adapter that an opened device keeps.
pub(crate) struct AdapterCore {
    pub(crate) instance: Arc<Instance>,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) info: AdapterInfo,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    pub(crate) compute: QueueFamily,
    pub(crate) transfer: Option<QueueFamily>,
    pub(crate) cache_uuid: [u8; 16],
    pub(crate) parked: Mutex<Vec<RawDevice>>,
}

/// A queue family that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFamily {
    pub(crate) index: u32,
    pub(crate) timestamp_bits: u32,
    pub(crate) flags: vk::QueueFlags,
}

struct Found {
    usable: Vec<Adapter>,
    unsupported: Vec<(String, String)>,
}

fn found() -> Result<&'static Found, Error> {
    static FOUND: OnceLock<Result<Found, Error>> = OnceLock::new();
    FOUND.get_or_init(enumerate).as_ref().map_err(Clone::clone)
}

/// The usable adapters: discrete, integrated, virtual, software; inside a class by memory, biggest
/// first. The loader is loaded and the adapters are enumerated once a process. A GPU that two
/// drivers list is listed twice.
///
/// # Errors
/// [`Error::NoLoader`], [`Error::NoAdapter`], or what the driver said.
pub fn adapters() -> Result<&'static [Adapter], Error> {
    let found = found()?;
    if found.usable.is_empty() {
        return Err(Error::NoAdapter);
    }
    Ok(&found.usable)
}

/// The adapters that are left out of [`adapters`]: name, and why.
pub fn unsupported_adapters() -> Vec<(String, String)> {
    found().map_or_else(|_| Vec::new(), |found| found.unsupported.clone())
}

impl Adapter {
    /// What is known of it.
    pub fn info(&self) -> &AdapterInfo {
        &self.core.info
    }

    /// Bytes that this process can expect to allocate now: what the driver says
    /// (`VK_EXT_memory_budget`), or the total where it says nothing. Takes some 15 µs.
    pub fn memory_free(&self) -> u64 {
        memory::free_bytes(&self.core)
    }

    /// Opens a device. Devices that are open at the same time are separate ones, each with its own
    /// queues. The first takes 60 to 80 ms on NVIDIA; the driver's side of a closed one is used again.
    ///
    /// # Errors
    /// What the driver said; [`Error::DeviceLost`] if the GPU is gone.
    pub fn open(&self) -> Result<Gpu, Error> {
        self.open_with(&OpenOptions::default())
    }

    /// Opens a device with options.
    ///
    /// # Errors
    /// As [`Adapter::open`].
    pub fn open_with(&self, options: &OpenOptions) -> Result<Gpu, Error> {
        Gpu::open(&self.core, options)
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Adapter").field(&self.core.info).finish()
    }
}

fn enumerate() -> Result<Found, Error> {
    let instance = Arc::new(Instance::load()?);
    // SAFETY: the instance is valid.
    let devices = match unsafe { instance.raw.enumerate_physical_devices() } {
        Ok(devices) => devices,
        // What some drivers answer when their hardware is absent.
        Err(vk::Result::ERROR_INITIALIZATION_FAILED) => Vec::new(),
        Err(error) => return Err(Error::from_vk("vkEnumeratePhysicalDevices", error)),
    };
    let mut usable = Vec::new();
    let mut unsupported = Vec::new();
    for device in devices {
        match inspect(&instance, device) {
            Ok(core) => usable.push(Adapter { core: Arc::new(core) }),
            Err(left_out) => {
                tracing::debug!("adapter {} left out: {}", left_out.0, left_out.1);
                unsupported.push(left_out);
            }
        }
    }
    usable.sort_by(|a, b| order(a.info(), b.info()));
    Ok(Found { usable, unsupported })
}

/// The order of [`adapters`]. Equal adapters keep the loader's order.
fn order(a: &AdapterInfo, b: &AdapterInfo) -> std::cmp::Ordering {
    a.kind.cmp(&b.kind).then(b.memory_total.cmp(&a.memory_total))
}

fn inspect(instance: &Arc<Instance>, physical: vk::PhysicalDevice) -> Result<AdapterCore, (String, String)> {
    // SAFETY: `physical` comes from this instance.
    let basic = unsafe { instance.raw.get_physical_device_properties(physical) };
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
    let features = Features::query(&instance.raw, physical, api)
        .map_err(|e| leave_out(&format!("its features cannot be read: {e:?}")))?;
    if let Some(missing) = features.missing() {
        return Err(leave_out(missing));
    }
    // SAFETY: `physical` comes from this instance.
    let families = unsafe { instance.raw.get_physical_device_queue_family_properties(physical) };
    let compute = compute_family(&families).ok_or_else(|| leave_out("no compute queue"))?;
    let transfer = transfer_family(&families);
    // SAFETY: `physical` comes from this instance.
    let memory = unsafe { instance.raw.get_physical_device_memory_properties(physical) };
    let properties = Properties::query(&instance.raw, physical, &features);
    let shapes = capabilities::matrix_shapes(instance, physical, &features);
    let kind = kind(properties.core.device_type);
    let info = AdapterInfo {
        vendor: vendor(basic.vendor_id),
        vendor_id: basic.vendor_id,
        device_id: basic.device_id,
        kind,
        driver_name: text(properties.v12.driver_name_as_c_str()),
        driver_info: text(properties.v12.driver_info_as_c_str()),
        driver_version: basic.driver_version,
        api_version: (vk::api_version_major(api), vk::api_version_minor(api), vk::api_version_patch(api)),
        device_uuid: properties.v11.device_uuid,
        memory_total: memory::total_bytes(kind, &memory),
        capabilities: capabilities::read(
            &features,
            &properties,
            &memory,
            shapes,
            compute.timestamp_bits,
            transfer.is_some(),
        ),
        name,
    };
    Ok(AdapterCore {
        instance: Arc::clone(instance),
        physical,
        info,
        memory,
        compute,
        transfer,
        cache_uuid: basic.pipeline_cache_uuid,
        parked: Mutex::default(),
    })
}

/// A family with compute and no graphics, else any with compute.
fn compute_family(families: &[vk::QueueFamilyProperties]) -> Option<QueueFamily> {
    let with = |avoid: vk::QueueFlags| {
        position(families, |flags| flags.contains(vk::QueueFlags::COMPUTE) && !flags.intersects(avoid))
    };
    with(vk::QueueFlags::GRAPHICS).or_else(|| with(vk::QueueFlags::empty()))
}

/// A family that copies and does neither compute nor graphics: a copy engine.
fn transfer_family(families: &[vk::QueueFamilyProperties]) -> Option<QueueFamily> {
    position(families, |flags| {
        flags.contains(vk::QueueFlags::TRANSFER)
            && !flags.intersects(
                vk::QueueFlags::COMPUTE
                    | vk::QueueFlags::GRAPHICS
                    | vk::QueueFlags::VIDEO_DECODE_KHR
                    | vk::QueueFlags::VIDEO_ENCODE_KHR
                    | vk::QueueFlags::OPTICAL_FLOW_NV,
            )
    })
}

fn position(families: &[vk::QueueFamilyProperties], accept: impl Fn(vk::QueueFlags) -> bool) -> Option<QueueFamily> {
    let index = families.iter().position(|f| f.queue_count > 0 && accept(f.queue_flags))?;
    Some(QueueFamily {
        index: u32::try_from(index).ok()?,
        timestamp_bits: families[index].timestamp_valid_bits,
        flags: families[index].queue_flags,
    })
}

fn kind(device_type: vk::PhysicalDeviceType) -> AdapterKind {
    match device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => AdapterKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => AdapterKind::Integrated,
        vk::PhysicalDeviceType::CPU => AdapterKind::Software,
        _ => AdapterKind::Virtual,
    }
}

fn vendor(id: u32) -> String {
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

fn text(bytes: Result<&std::ffi::CStr, std::ffi::FromBytesUntilNulError>) -> String {
    bytes.map_or_else(|_| "unnamed".to_owned(), |s| s.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, kind: AdapterKind, gib: u64) -> AdapterInfo {
        AdapterInfo {
            name: name.to_owned(),
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
        infos.sort_by(order);
        let names: Vec<&str> = infos.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["big", "big again", "small", "integrated", "virtual", "software"]);
    }

    #[test]
    fn vendors_have_names() {
        assert_eq!(vendor(0x10DE), "NVIDIA");
        assert_eq!(vendor(0x10005), "Mesa");
        assert_eq!(vendor(0xABCD), "0xabcd");
    }

    #[test]
    fn compute_prefers_a_family_without_graphics() {
        let family = |flags| vk::QueueFamilyProperties { queue_flags: flags, queue_count: 1, ..Default::default() };
        let all = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let nvidia = [
            family(all),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::SPARSE_BINDING),
            family(vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER),
            family(vk::QueueFlags::TRANSFER | vk::QueueFlags::VIDEO_DECODE_KHR),
        ];
        assert_eq!(compute_family(&nvidia).map(|f| f.index), Some(2));
        assert_eq!(transfer_family(&nvidia).map(|f| f.index), Some(1));
        let one = [family(all)];
        assert_eq!(compute_family(&one).map(|f| f.index), Some(0));
        assert_eq!(transfer_family(&one), None);
        assert_eq!(compute_family(&[family(vk::QueueFlags::TRANSFER)]), None);
    }
}
