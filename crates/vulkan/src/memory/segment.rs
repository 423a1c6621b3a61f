//! Segments: a buffer with memory of its own.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use dml_gpu::MemoryClass;

use super::class;
use crate::device::{Charge, DeviceShared, Entry};
use crate::error::Error;

/// A buffer of GPU memory with a fixed address. Dropping it frees the memory at once; the caller
/// ensures that the GPU is done with it.
pub struct Segment {
    device: Arc<DeviceShared>,
    pub(crate) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    address: u64,
    bytes: u64,
    mapped: Option<NonNull<u8>>,
    _entry: Entry,
    _charge: Charge,
}

// SAFETY: any thread may use Vulkan's objects, and only one at a time may modify them: only `drop`
// modifies them, with exclusive access. The pointer is to mapped memory that lives as long as the
// segment and belongs to no thread; code that dereferences it is responsible for races.
unsafe impl Send for Segment {}
// SAFETY: as above; `&Segment` gives copies of plain values only.
unsafe impl Sync for Segment {}

impl Segment {
    /// Whether it belongs to this device.
    pub(crate) fn is_of(&self, device: &Arc<DeviceShared>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    /// Allocates `bytes` bytes, trying the memory types of `class` from best to worst.
    pub(crate) fn new(device: &Arc<DeviceShared>, bytes: u64, class: MemoryClass) -> Result<Self, Error> {
        device.check()?;
        if bytes == 0 {
            return Err(Error::Invalid { call: "Gpu::allocate", what: "a segment needs at least one byte".to_owned() });
        }
        if bytes > device.adapter.largest_segment() {
            return Err(Error::OutOfMemory { requested: bytes });
        }
        let entry = device.ledger.enter(device.adapter.info.capabilities.max_allocations)?;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(
            vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST
                | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS,
        );
        // SAFETY: the device is valid; `info` and what it points to live through the call. The size
        // is not 0 and not above `maxBufferSize`.
        let buffer = unsafe { device.raw.create_buffer(&info, None) }
            .map_err(|e| device.error_of("vkCreateBuffer", e, bytes))?;
        // SAFETY: the buffer was just created on this device.
        let needs = unsafe { device.raw.get_buffer_memory_requirements(buffer) };
        let allocated = allocate(device, class, bytes, &needs).and_then(|(memory, charge)| {
            let bound = bind(device, buffer, memory, class, bytes).inspect_err(|_| {
                // SAFETY: the memory belongs to this device and has no other owner, and no work
                // uses the buffer. Freeing mapped memory unmaps it.
                unsafe { device.raw.free_memory(memory, None) }
            });
            bound.map(|bound| (bound, charge))
        });
        allocated
            .map(|((memory, address, mapped), charge)| Self {
                device: Arc::clone(device),
                buffer,
                memory,
                address,
                bytes,
                mapped,
                _entry: entry,
                _charge: charge,
            })
            .inspect_err(|_| {
                // SAFETY: the buffer belongs to this device and has no other owner, and no work
                // uses it.
                unsafe { device.raw.destroy_buffer(buffer, None) }
            })
    }
}

impl dml_gpu::Segment for Segment {
    fn address(&self) -> u64 {
        self.address
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
            return; // The GPU may still write to it: leaking is the lesser harm.
        }
        // SAFETY: both belong to this device and have no other owner: other objects hold the
        // segment, not its parts. The owner of a segment ensures that the GPU is done with it ("Not
        // guaranteed" in `lib.rs`). Freeing mapped memory unmaps it.
        unsafe {
            self.device.raw.destroy_buffer(self.buffer, None);
            self.device.raw.free_memory(self.memory, None);
        }
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("address", &format_args!("{:#x}", self.address))
            .field("bytes", &self.bytes)
            .field("mapped", &self.mapped.is_some())
            .finish()
    }
}

fn allocate(
    device: &DeviceShared,
    class: MemoryClass,
    bytes: u64,
    needs: &vk::MemoryRequirements,
) -> Result<(vk::DeviceMemory, Charge), Error> {
    let layout = &device.adapter.memory;
    let types = class::candidates(class, layout, needs);
    let mut full_heaps: Vec<u32> = Vec::new();
    for (index, heap) in types {
        if full_heaps.contains(&heap) {
            continue;
        }
        let Some(charge) = device.ledger.charge(layout, heap, needs.size) else {
            full_heaps.push(heap);
            continue;
        };
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(layout.driver_type(index))
            .push_next(&mut flags);
        // SAFETY: the device is valid; `info` and everything it points to live through the call.
        // The size is not 0 and not above the heap's, the type is one of the driver's, and buffer
        // addresses are enabled, which the flag requires.
        match unsafe { device.raw.allocate_memory(&info, None) } {
            Ok(memory) => return Ok((memory, charge)),
            Err(
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                | vk::Result::ERROR_OUT_OF_HOST_MEMORY
                | vk::Result::ERROR_TOO_MANY_OBJECTS,
            ) => full_heaps.push(heap),
            Err(error) => return Err(device.error_of("vkAllocateMemory", error, bytes)),
        }
    }
    Err(Error::OutOfMemory { requested: bytes })
}

type Bound = (vk::DeviceMemory, u64, Option<NonNull<u8>>);

fn bind(
    device: &DeviceShared,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    class: MemoryClass,
    bytes: u64,
) -> Result<Bound, Error> {
    // SAFETY: buffer and memory are new and belong to this device; the memory has the size and one
    // of the types that the buffer requires, and offset 0 suits any alignment.
    unsafe { device.raw.bind_buffer_memory(buffer, memory, 0) }
        .map_err(|e| device.error_of("vkBindBufferMemory", e, bytes))?;
    let mapped = if class == MemoryClass::Device {
        None
    } else {
        // SAFETY: the memory is new and host-visible, as that of all classes but `Device` is
        // ([`class::candidates`]); the driver's type has at least the properties of an imitated
        // one. It is mapped once.
        let pointer = unsafe { device.raw.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
            .map_err(|e| device.error_of("vkMapMemory", e, bytes))?;
        NonNull::new(pointer.cast::<u8>())
    };
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the feature is enabled; the buffer has address usage and is bound to memory with the
    // address flag.
    let address = unsafe { device.raw.get_buffer_device_address(&info) };
    if address == 0 {
        return Err(Error::Driver { call: "vkGetBufferDeviceAddress", code: 0, name: "a null address".to_owned() });
    }
    Ok((memory, address, mapped))
}
