//! The adapters of this machine.

use std::sync::{Arc, OnceLock};

use dml_environment::VALIDATION;
use dml_gpu::{AdapterInfo, AdapterKind, Capabilities, FileIdentity, vendor_name};
use windows::Win32::Graphics::Direct3D12::{
    D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_QUEUE_DESC, ID3D12CommandQueue, ID3D12Device,
};
use windows::Win32::Graphics::Dxgi::{
    DXGI_ADAPTER_DESC1, DXGI_ADAPTER_FLAG_SOFTWARE, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, DXGI_QUERY_VIDEO_MEMORY_INFO,
    IDXGIAdapter3, IDXGIDevice,
};
use windows::core::Interface;

use crate::capabilities::Features;
use crate::direct3d::NAME;
use crate::error::{Error, from_hresult};
use crate::library::Library;

/// One GPU as Direct3D lists it.
pub struct Adapter {
    pub(crate) shared: Arc<AdapterShared>,
}

/// The part of an adapter that an opened device keeps.
pub(crate) struct AdapterShared {
    raw: IDXGIAdapter3,
    pub(crate) library: Library,
    pub(crate) info: AdapterInfo,
    identity: FileIdentity,
}

#[derive(Default)]
struct Found {
    usable: Vec<Adapter>,
    without_kernels: Vec<Adapter>,
    unsupported: Vec<(String, String)>,
}

fn found() -> Result<&'static Found, Error> {
    static FOUND: OnceLock<Result<Found, Error>> = OnceLock::new();
    FOUND.get_or_init(enumerate).as_ref().map_err(Clone::clone)
}

/// See [`dml_gpu::Api::adapters`].
///
/// # Errors
/// As for that function.
pub fn adapters() -> Result<&'static [Adapter], Error> {
    let found = found()?;
    if found.usable.is_empty() {
        return Err(Error::NoAdapter { api: NAME });
    }
    Ok(&found.usable)
}

/// The adapters that [`adapters`] leaves out only because they lack the kernels' shader model: for
/// tests without kernels, as on Wine.
pub fn adapters_without_kernels() -> &'static [Adapter] {
    found().map_or(&[], |found| &found.without_kernels)
}

/// The adapters that [`adapters`] leaves out: name and reason.
pub fn unsupported_adapters() -> Vec<(String, String)> {
    found().map_or_else(|_| Vec::new(), |found| found.unsupported.clone())
}

fn enumerate() -> Result<Found, Error> {
    if VALIDATION.get() == Some(true) {
        // A check that silently checks nothing is worse than none.
        return Err(Error::NoValidation {
            layer: "Direct3D 12's debug layer",
            install: "this version does not use it",
        });
    }
    let library = Library::load()?;
    let factory = library.factory()?;
    let mut found = Found::default();
    for index in 0.. {
        // SAFETY: the factory is valid; the list ends with an error.
        let Ok(adapter) = (unsafe { factory.EnumAdapters1(index) }) else { break };
        let Ok(raw) = adapter.cast::<IDXGIAdapter3>() else { continue };
        match AdapterShared::inspect(raw, library) {
            Ok((shared, None)) => found.usable.push(Adapter { shared: Arc::new(shared) }),
            Ok((shared, Some(why))) => {
                found.unsupported.push((shared.info.name.clone(), why));
                found.without_kernels.push(Adapter { shared: Arc::new(shared) });
            }
            Err(left_out) => found.unsupported.push(left_out),
        }
    }
    for (name, why) in &found.unsupported {
        tracing::debug!("adapter {name} left out: {why}");
    }
    found.usable.sort_by(|a, b| a.shared.info.listing_order(&b.shared.info));
    Ok(found)
}

impl AdapterShared {
    /// Reads the driver's description of a GPU, and the reason if it does not run kernels; for an
    /// unusable GPU, its name and the reason.
    fn inspect(raw: IDXGIAdapter3, library: Library) -> Result<(Self, Option<String>), (String, String)> {
        // SAFETY: the adapter is valid.
        let description = unsafe { raw.GetDesc1() }.map_err(|e| ("unnamed".to_owned(), e.message()))?;
        let name = text(&description.Description);
        let device = library.device(&raw).map_err(|e| (name.clone(), e.to_string()))?;
        let features = Features::of(&device);
        if let Some(why) = features.misses_for_segments() {
            return Err((name, why));
        }
        let period_ns = period_ns(&device).unwrap_or(0.0);
        let why = features.misses_for_kernels();
        // SAFETY: the adapter is valid; the id is that of an interface that drivers name their
        // version for.
        let driver = unsafe { raw.CheckInterfaceSupport(&IDXGIDevice::IID) }.unwrap_or(0) as u64;
        let info = info(name, &description, driver, features.unified(), features.capabilities(period_ns));
        let mut uuid = [0; 16];
        uuid[..4].copy_from_slice(&description.SubSysId.to_le_bytes());
        uuid[4..8].copy_from_slice(&description.Revision.to_le_bytes());
        uuid[8..].copy_from_slice(&driver.to_le_bytes());
        let identity = FileIdentity {
            vendor: description.VendorId,
            device: description.DeviceId,
            driver: info.driver_version,
            uuid,
        };
        Ok((Self { raw, library, info, identity }, why))
    }

    /// A new device without other owners.
    pub(crate) fn device(&self) -> Result<ID3D12Device, Error> {
        self.library.device(&self.raw)
    }

    /// The identity of the adapter's files on disk.
    pub(crate) fn file_identity(&self) -> FileIdentity {
        self.identity.clone()
    }

    /// The bytes that the system lets this process have on the adapter, less the bytes in use.
    pub(crate) fn memory_free(&self) -> u64 {
        let mut answer = DXGI_QUERY_VIDEO_MEMORY_INFO::default();
        // SAFETY: the adapter is valid, and the structure lives through the call.
        let known = unsafe { self.raw.QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &mut answer) };
        known.map_or(self.info.memory_total, |()| answer.Budget.saturating_sub(answer.CurrentUsage))
    }
}

fn info(
    name: String,
    description: &DXGI_ADAPTER_DESC1,
    driver: u64,
    unified: bool,
    capabilities: Capabilities,
) -> AdapterInfo {
    let own = description.DedicatedVideoMemory as u64;
    let kind = if description.Flags & DXGI_ADAPTER_FLAG_SOFTWARE.0 as u32 != 0 {
        AdapterKind::Software
    } else if unified {
        AdapterKind::Integrated
    } else {
        AdapterKind::Discrete
    };
    // The other adapters of this computer have other ids, until it is restarted.
    let mut device_uuid = [0; 16];
    device_uuid[..4].copy_from_slice(&description.AdapterLuid.LowPart.to_le_bytes());
    device_uuid[4..8].copy_from_slice(&description.AdapterLuid.HighPart.to_le_bytes());
    device_uuid[8..12].copy_from_slice(&description.VendorId.to_le_bytes());
    device_uuid[12..].copy_from_slice(&description.DeviceId.to_le_bytes());
    AdapterInfo {
        name,
        profile: None,
        vendor: vendor_name(description.VendorId),
        vendor_id: description.VendorId,
        device_id: description.DeviceId,
        kind,
        driver_name: NAME.to_owned(),
        driver_info: [48, 32, 16, 0].map(|part| (driver >> part & 0xffff).to_string()).join("."),
        driver_version: driver as u32,
        api_version: (12, 0, 0),
        device_uuid,
        memory_total: if kind == AdapterKind::Discrete { own } else { own + description.SharedSystemMemory as u64 },
        capabilities,
    }
}

/// Nanoseconds of a timestamp tick of a compute queue.
fn period_ns(device: &ID3D12Device) -> Result<f32, Error> {
    let queue = compute_queue(device)?;
    // SAFETY: the queue is valid.
    let frequency = unsafe { queue.GetTimestampFrequency() }
        .map_err(|e| from_hresult("ID3D12CommandQueue::GetTimestampFrequency", &e))?;
    Ok(if frequency == 0 { 0.0 } else { (1e9 / frequency as f64) as f32 })
}

/// A queue for kernels and copies.
pub(crate) fn compute_queue(device: &ID3D12Device) -> Result<ID3D12CommandQueue, Error> {
    let description = D3D12_COMMAND_QUEUE_DESC { Type: D3D12_COMMAND_LIST_TYPE_COMPUTE, ..Default::default() };
    // SAFETY: the device is valid, and the structure lives through the call.
    unsafe { device.CreateCommandQueue(&description) }.map_err(|e| from_hresult("ID3D12Device::CreateCommandQueue", &e))
}

/// The text before the first NUL.
fn text(wide: &[u16]) -> String {
    String::from_utf16_lossy(wide.split(|&unit| unit == 0).next().unwrap_or_default())
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Adapter").field(&self.shared.info).finish()
    }
}
