//! Segments: a buffer with memory of its own, and its index in the descriptor table of the kernels.

use std::ptr::NonNull;
use std::sync::Arc;

use dml_gpu::MemoryClass;
use windows::Win32::Graphics::Direct3D12::*;
use windows::Win32::Graphics::Dxgi::Common::{DXGI_FORMAT_UNKNOWN, DXGI_SAMPLE_DESC};

use crate::capabilities::MAX_SEGMENT;
use crate::device::DeviceShared;
use crate::error::{Error, invalid};

/// See [`dml_gpu::Segment`].
pub struct Segment {
    device: Arc<DeviceShared>,
    pub(crate) buffer: ID3D12Resource,
    place: u32,
    bytes: u64,
    mapped: Option<NonNull<u8>>,
}

// SAFETY: any thread may use Direct3D's objects. The pointer is to mapped memory that lives as long
// as the segment and belongs to no thread; code that dereferences it is responsible for races.
unsafe impl Send for Segment {}
// SAFETY: as above; `&Segment` gives copies of plain values only.
unsafe impl Sync for Segment {}

impl Segment {
    pub(crate) fn new(device: &Arc<DeviceShared>, bytes: u64, class: MemoryClass) -> Result<Self, Error> {
        device.check()?;
        if bytes == 0 {
            return Err(invalid("Gpu::allocate", "a segment needs at least one byte"));
        }
        if bytes > MAX_SEGMENT {
            return Err(Error::OutOfMemory { requested: bytes });
        }
        // Kernels access whole words.
        let width = bytes.next_multiple_of(4);
        let buffer = buffer(device, width, heap(class), D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS)?;
        let mapped = if class == MemoryClass::Device { None } else { Some(map(device, &buffer, bytes)?) };
        let place = device.table.enter(&device.raw, &buffer, width)?;
        Ok(Self { device: Arc::clone(device), buffer, place, bytes, mapped })
    }

    /// Whether it belongs to this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }
}

impl dml_gpu::Segment for Segment {
    fn address(&self) -> u64 {
        u64::from(self.place) << 32
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn host_ptr(&self) -> Option<NonNull<u8>> {
        self.mapped
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.device.is_hung() {
            // The GPU may still write to it: leaking is the lesser harm.
            std::mem::forget(self.buffer.clone());
            return;
        }
        self.device.table.leave(self.place);
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("place", &self.place)
            .field("bytes", &self.bytes)
            .field("mapped", &self.mapped.is_some())
            .finish_non_exhaustive()
    }
}

/// The heap for a class of memory. Device memory uses one of Direct3D's kinds; host-visible memory
/// is in host memory (L0) with a custom kind, because kernels must not write to Direct3D's kinds.
fn heap(class: MemoryClass) -> D3D12_HEAP_PROPERTIES {
    let (kind, page, pool) = match class {
        MemoryClass::Device => (D3D12_HEAP_TYPE_DEFAULT, D3D12_CPU_PAGE_PROPERTY_UNKNOWN, D3D12_MEMORY_POOL_UNKNOWN),
        MemoryClass::Upload => (D3D12_HEAP_TYPE_CUSTOM, D3D12_CPU_PAGE_PROPERTY_WRITE_COMBINE, D3D12_MEMORY_POOL_L0),
        MemoryClass::Readback | MemoryClass::Staging => {
            (D3D12_HEAP_TYPE_CUSTOM, D3D12_CPU_PAGE_PROPERTY_WRITE_BACK, D3D12_MEMORY_POOL_L0)
        }
    };
    D3D12_HEAP_PROPERTIES {
        Type: kind,
        CPUPageProperty: page,
        MemoryPoolPreference: pool,
        CreationNodeMask: 0,
        VisibleNodeMask: 0,
    }
}

/// A buffer with memory of its own. Newer systems have a flag that avoids clearing it.
pub(crate) fn buffer(
    device: &DeviceShared,
    bytes: u64,
    heap: D3D12_HEAP_PROPERTIES,
    flags: D3D12_RESOURCE_FLAGS,
) -> Result<ID3D12Resource, Error> {
    let description = D3D12_RESOURCE_DESC {
        Dimension: D3D12_RESOURCE_DIMENSION_BUFFER,
        Alignment: 0,
        Width: bytes,
        Height: 1,
        DepthOrArraySize: 1,
        MipLevels: 1,
        Format: DXGI_FORMAT_UNKNOWN,
        SampleDesc: DXGI_SAMPLE_DESC { Count: 1, Quality: 0 },
        Layout: D3D12_TEXTURE_LAYOUT_ROW_MAJOR,
        Flags: flags,
    };
    // Direct3D requires this state of its own kind for memory that the GPU writes and the host
    // reads.
    let state = if heap.Type == D3D12_HEAP_TYPE_READBACK {
        D3D12_RESOURCE_STATE_COPY_DEST
    } else {
        D3D12_RESOURCE_STATE_COMMON
    };
    let mut made: Option<ID3D12Resource> = None;
    const CALL: &str = "ID3D12Device::CreateCommittedResource";
    // SAFETY: the device is valid; the structures and `made` live through the call.
    unsafe { device.raw.CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &description, state, None, &mut made) }
        .map_err(|e| device.error_of(CALL, &e, bytes))?;
    made.ok_or(Error::Driver { call: CALL, code: 0, name: "no buffer".to_owned() })
}

/// The host address of a host-visible buffer. It stays mapped as long as the buffer lives.
pub(crate) fn map(device: &DeviceShared, buffer: &ID3D12Resource, bytes: u64) -> Result<NonNull<u8>, Error> {
    const CALL: &str = "ID3D12Resource::Map";
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the buffer is valid and has one part, which the host can see; `pointer` lives through
    // the call.
    unsafe { buffer.Map(0, None, Some(&mut pointer)) }.map_err(|e| device.error_of(CALL, &e, bytes))?;
    NonNull::new(pointer.cast()).ok_or(Error::Driver { call: CALL, code: 0, name: "a null pointer".to_owned() })
}
