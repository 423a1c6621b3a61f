//! What memory is for, and which memory types serve that.

use ash::vk;

use crate::adapter::MemoryLayout;

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

/// The memory types to try for `class`, best first, as (type, heap). `allowed` has a bit for each of the driver's types.
pub(super) fn candidates(class: MemoryClass, layout: &MemoryLayout, allowed: u32) -> Vec<(u32, u32)> {
    use vk::MemoryPropertyFlags as Flag;
    let avoid = Flag::PROTECTED
        | Flag::LAZILY_ALLOCATED
        | Flag::DEVICE_COHERENT_AMD
        | Flag::DEVICE_UNCACHED_AMD
        | Flag::RDMA_CAPABLE_NV;
    let coherent = Flag::HOST_VISIBLE | Flag::HOST_COHERENT;
    let mut found: Vec<(u32, u32, u32)> = Vec::new();
    for (index, ty) in (0u32..).zip(layout.properties.memory_types_as_slice()) {
        let flags = ty.property_flags;
        if allowed & (1 << layout.driver_type(index)) == 0 || flags.intersects(avoid) {
            continue;
        }
        let local = flags.contains(Flag::DEVICE_LOCAL);
        let cached = flags.contains(Flag::HOST_CACHED);
        // Lower is better; None is never.
        let rank = match class {
            MemoryClass::Device if local && !flags.contains(Flag::HOST_VISIBLE) => Some(0),
            MemoryClass::Device if local => Some(1),
            // The other heap of an integrated GPU is the same memory.
            MemoryClass::Device => layout.unified.then_some(2),
            _ if !flags.contains(coherent) => None,
            MemoryClass::Upload if local => Some(0),
            MemoryClass::Upload => Some(if cached { 2 } else { 1 }),
            MemoryClass::Readback | MemoryClass::Staging => {
                let host_side = !local || layout.unified;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::AdapterKind;
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
        candidates(class, &MemoryLayout::of_driver(kind, *m), !0).into_iter().map(|(ty, _)| ty).collect()
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
    }

    #[test]
    fn integrated_gpu_classes() {
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
    }

    #[test]
    fn memory_that_is_not_coherent_is_not_mapped() {
        // As on processors of phones, whose cached type comes first. Vulkan promises a coherent one beside it.
        let visible = Flag::HOST_VISIBLE | Flag::DEVICE_LOCAL;
        let m = memory(
            &[(visible | Flag::HOST_CACHED, 0), (visible | Flag::HOST_COHERENT, 0), (visible, 0)],
            &[(8 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL)],
        );
        for class in [MemoryClass::Upload, MemoryClass::Readback, MemoryClass::Staging] {
            assert_eq!(types(class, AdapterKind::Integrated, &m), [1], "{class:?}");
        }
        assert_eq!(types(MemoryClass::Device, AdapterKind::Integrated, &m), [0, 1, 2]);
    }
}
