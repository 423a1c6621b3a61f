//! Segments: a buffer with memory of its own, and how a memory type is chosen.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;

use crate::adapter::{AdapterCore, AdapterKind};
use crate::error::Error;
use crate::gpu::GpuCore;

/// What memory is for. All mapped memory is coherent: it needs no flush and no invalidation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryClass {
    /// The fastest for the GPU. Not mapped.
    Device,
    /// Written by the CPU, in order; read by the GPU. In device memory where the host can write to
    /// it. The CPU must not read it: 16 KiB can take half a millisecond.
    Upload,
    /// Written by the GPU, read by the CPU: in host memory, cached.
    Readback,
    /// Host memory that CPU and GPU both read and write: pinned tensors, copies in both directions.
    Staging,
}

/// A buffer of GPU memory with a fixed address. Dropping it frees the memory at once; the caller
/// sees to it that the GPU is done with it.
pub struct Segment {
    gpu: Arc<GpuCore>,
    pub(crate) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    address: u64,
    bytes: u64,
    mapped: Option<NonNull<u8>>,
}

// SAFETY: the pointer is to mapped memory that lives as long as the segment and belongs to no
// thread; whoever dereferences it answers for races.
unsafe impl Send for Segment {}
// SAFETY: as above; `&Segment` hands out copies of plain values only.
unsafe impl Sync for Segment {}

impl Segment {
    /// The GPU address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the host sees the first byte; `None` for [`MemoryClass::Device`].
    pub fn host_ptr(&self) -> Option<NonNull<u8>> {
        self.mapped
    }

    /// Allocates `bytes` bytes, trying the memory types of `class` from best to worst.
    pub(crate) fn new(gpu: &Arc<GpuCore>, bytes: u64, class: MemoryClass) -> Result<Self, Error> {
        gpu.check()?;
        if bytes == 0 {
            return Err(Error::Invalid { call: "Gpu::allocate", what: "a segment needs at least one byte".to_owned() });
        }
        if bytes > largest_segment(&gpu.adapter) {
            return Err(Error::OutOfMemory { requested: bytes });
        }
        let device = &gpu.device;
        let families = gpu.families();
        let mut info = vk::BufferCreateInfo::default().size(bytes).usage(
            vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST
                | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS,
        );
        // Concurrent sharing costs buffers nothing and saves ownership transfers.
        if families.len() > 1 {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(families);
        }
        // SAFETY: the device is valid; `info` lives through the call.
        let buffer =
            unsafe { device.create_buffer(&info, None) }.map_err(|e| gpu.error_of("vkCreateBuffer", e, bytes))?;
        // SAFETY: the buffer was just created on this device.
        let needs = unsafe { device.get_buffer_memory_requirements(buffer) };
        let allocated = allocate(gpu, class, bytes, &needs).and_then(|memory| {
            bind(gpu, buffer, memory, class, bytes).inspect_err(|_| {
                // SAFETY: nothing else uses the memory; freeing it unmaps it.
                unsafe { device.free_memory(memory, None) }
            })
        });
        allocated
            .map(|(memory, address, mapped)| Self { gpu: Arc::clone(gpu), buffer, memory, address, bytes, mapped })
            .inspect_err(|_| {
                // SAFETY: nothing uses the buffer.
                unsafe { device.destroy_buffer(buffer, None) }
            })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return; // The GPU may still write to it: leaking is the lesser harm.
        }
        // SAFETY: the caller guarantees that the GPU is done with the segment. Freeing mapped memory unmaps it.
        unsafe {
            self.gpu.device.destroy_buffer(self.buffer, None);
            self.gpu.device.free_memory(self.memory, None);
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
    gpu: &GpuCore,
    class: MemoryClass,
    bytes: u64,
    needs: &vk::MemoryRequirements,
) -> Result<vk::DeviceMemory, Error> {
    let types = candidates(class, gpu.adapter.info.kind, &gpu.adapter.memory, needs.memory_type_bits);
    let mut full_heaps: Vec<u32> = Vec::new();
    for (index, heap) in types {
        if full_heaps.contains(&heap) {
            continue;
        }
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(index)
            .push_next(&mut flags);
        // SAFETY: the device is valid; `info` and what it points to live through the call.
        match unsafe { gpu.device.allocate_memory(&info, None) } {
            Ok(memory) => return Ok(memory),
            Err(
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                | vk::Result::ERROR_OUT_OF_HOST_MEMORY
                | vk::Result::ERROR_TOO_MANY_OBJECTS,
            ) => full_heaps.push(heap),
            Err(error) => return Err(gpu.error_of("vkAllocateMemory", error, bytes)),
        }
    }
    Err(Error::OutOfMemory { requested: bytes })
}

type Bound = (vk::DeviceMemory, u64, Option<NonNull<u8>>);

fn bind(
    gpu: &GpuCore,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    class: MemoryClass,
    bytes: u64,
) -> Result<Bound, Error> {
    let device = &gpu.device;
    // SAFETY: buffer and memory are fresh, of this device, and the memory is large enough.
    unsafe { device.bind_buffer_memory(buffer, memory, 0) }
        .map_err(|e| gpu.error_of("vkBindBufferMemory", e, bytes))?;
    let mapped = if class == MemoryClass::Device {
        None
    } else {
        // SAFETY: the classes other than Device choose host-visible types only; it is mapped once.
        let pointer = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) }
            .map_err(|e| gpu.error_of("vkMapMemory", e, bytes))?;
        NonNull::new(pointer.cast::<u8>())
    };
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
    // SAFETY: the buffer has address usage and is bound to memory with the address flag.
    let address = unsafe { device.get_buffer_device_address(&info) };
    if address == 0 {
        return Err(Error::Driver { call: "vkGetBufferDeviceAddress", code: 0, name: "a null address".to_owned() });
    }
    Ok((memory, address, mapped))
}

/// The memory types to try for `class`, best first, as (type, heap).
fn candidates(
    class: MemoryClass,
    kind: AdapterKind,
    memory: &vk::PhysicalDeviceMemoryProperties,
    allowed: u32,
) -> Vec<(u32, u32)> {
    use vk::MemoryPropertyFlags as Flag;
    let unified = matches!(kind, AdapterKind::Integrated | AdapterKind::Software);
    let avoid = Flag::PROTECTED
        | Flag::LAZILY_ALLOCATED
        | Flag::DEVICE_COHERENT_AMD
        | Flag::DEVICE_UNCACHED_AMD
        | Flag::RDMA_CAPABLE_NV;
    let coherent = Flag::HOST_VISIBLE | Flag::HOST_COHERENT;
    let mut found: Vec<(u32, u32, u32)> = Vec::new();
    for (index, ty) in (0u32..).zip(memory.memory_types_as_slice()) {
        let flags = ty.property_flags;
        if allowed & (1 << index) == 0 || flags.intersects(avoid) {
            continue;
        }
        let local = flags.contains(Flag::DEVICE_LOCAL);
        let cached = flags.contains(Flag::HOST_CACHED);
        // Lower is better; None is never.
        let rank = match class {
            MemoryClass::Device if local && !flags.contains(Flag::HOST_VISIBLE) => Some(0),
            MemoryClass::Device if local => Some(1),
            // The other heap of an integrated GPU is the same memory.
            MemoryClass::Device => unified.then_some(2),
            _ if !flags.contains(coherent) => None,
            MemoryClass::Upload if local => Some(0),
            MemoryClass::Upload => Some(if cached { 2 } else { 1 }),
            MemoryClass::Readback | MemoryClass::Staging => {
                let host_side = !local || unified;
                Some(match (host_side, cached) {
                    (true, true) => 0,
                    (true, false) => 1,
                    (false, true) => 2,
                    (false, false) => 3,
                })
            }
        };
        if let Some(rank) = rank {
            found.push((rank, index, ty.heap_index));
        }
    }
    found.sort_by_key(|&(rank, index, _)| (rank, index)); // drivers list faster types first
    found.into_iter().map(|(_, index, heap)| (index, heap)).collect()
}

/// The heaps that count as an adapter's memory.
fn counted_heaps(kind: AdapterKind, memory: &vk::PhysicalDeviceMemoryProperties) -> impl Iterator<Item = (usize, u64)> {
    let all = kind == AdapterKind::Integrated;
    memory
        .memory_heaps_as_slice()
        .iter()
        .enumerate()
        .filter(move |(_, heap)| all || heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .map(|(index, heap)| (index, heap.size))
}

/// The largest segment that is worth trying to allocate.
pub(crate) fn largest_segment(adapter: &AdapterCore) -> u64 {
    let limit = if adapter.info.kind == AdapterKind::Software {
        adapter.info.capabilities.max_allocation
    } else {
        // Drivers vouch for some 4 GiB and give more: a tensor may well be larger.
        adapter.info.capabilities.max_buffer
    };
    limit.min(largest_heap(&adapter.memory))
}

fn largest_heap(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    let heaps = memory.memory_heaps_as_slice();
    heaps.iter().map(|heap| heap.size).max().unwrap_or(0)
}

pub(crate) fn total_bytes(kind: AdapterKind, memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    counted_heaps(kind, memory).map(|(_, bytes)| bytes).sum()
}

/// Budget less usage of the counted heaps, or their size where the driver has no budget.
pub(crate) fn free_bytes(adapter: &AdapterCore) -> u64 {
    if !adapter.info.capabilities.memory_budget {
        return adapter.info.memory_total;
    }
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the adapter has the extension that defines the chained structure.
    unsafe {
        adapter.instance.raw.get_physical_device_memory_properties2(adapter.physical, &mut all);
    }
    counted_heaps(adapter.info.kind, &adapter.memory)
        .map(|(heap, _)| budget.heap_budget[heap].saturating_sub(budget.heap_usage[heap]))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::MemoryPropertyFlags as Flag;

    fn memory(types: &[(Flag, u32)], heaps: &[(u64, vk::MemoryHeapFlags)]) -> vk::PhysicalDeviceMemoryProperties {
        let mut memory = vk::PhysicalDeviceMemoryProperties {
            memory_type_count: types.len() as u32,
            memory_heap_count: heaps.len() as u32,
            ..Default::default()
        };
        for (to, &(property_flags, heap_index)) in memory.memory_types.iter_mut().zip(types) {
            *to = vk::MemoryType { property_flags, heap_index };
        }
        for (to, &(size, flags)) in memory.memory_heaps.iter_mut().zip(heaps) {
            *to = vk::MemoryHeap { size, flags };
        }
        memory
    }

    fn types(class: MemoryClass, kind: AdapterKind, m: &vk::PhysicalDeviceMemoryProperties) -> Vec<u32> {
        candidates(class, kind, m, !0).into_iter().map(|(ty, _)| ty).collect()
    }

    const COHERENT: Flag = Flag::from_raw(Flag::HOST_VISIBLE.as_raw() | Flag::HOST_COHERENT.as_raw());

    #[test]
    fn discrete_gpu_classes() {
        // The types of an NVIDIA driver.
        let m = memory(
            &[
                (Flag::empty(), 1),
                (Flag::DEVICE_LOCAL, 0),
                (COHERENT, 1),
                (COHERENT | Flag::HOST_CACHED, 1),
                (COHERENT | Flag::DEVICE_LOCAL, 2),
            ],
            &[
                (80 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL),
                (64 << 30, vk::MemoryHeapFlags::empty()),
                (224 << 20, vk::MemoryHeapFlags::DEVICE_LOCAL),
            ],
        );
        let kind = AdapterKind::Discrete;
        assert_eq!(types(MemoryClass::Device, kind, &m), [1, 4]);
        assert_eq!(types(MemoryClass::Upload, kind, &m), [4, 2, 3]);
        assert_eq!(types(MemoryClass::Readback, kind, &m), [3, 2, 4]);
        assert_eq!(types(MemoryClass::Staging, kind, &m), [3, 2, 4]);
        assert_eq!(total_bytes(kind, &m), (80 << 30) + (224 << 20));
    }

    #[test]
    fn integrated_gpu_uses_both_heaps() {
        let m = memory(
            &[
                (COHERENT, 0),
                (Flag::DEVICE_LOCAL, 1),
                (COHERENT | Flag::HOST_CACHED, 0),
                (COHERENT | Flag::DEVICE_LOCAL, 1),
            ],
            &[(6 << 30, vk::MemoryHeapFlags::empty()), (2 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL)],
        );
        let kind = AdapterKind::Integrated;
        assert_eq!(types(MemoryClass::Device, kind, &m), [1, 3, 0, 2]);
        assert_eq!(types(MemoryClass::Upload, kind, &m), [3, 0, 2]);
        assert_eq!(types(MemoryClass::Readback, kind, &m)[0], 2);
        assert_eq!(total_bytes(kind, &m), 8 << 30);
    }
}
