//! An adapter's heaps and memory types, and what the driver calls those types.

use ash::vk;
use dml_gpu::AdapterKind;

use super::heaps;
use super::profile::{HeapSize, MemoryShape};

/// An adapter's heaps and memory types. They are the driver's, unless a profile imitates others.
pub(crate) struct MemoryLayout {
    pub(crate) properties: vk::PhysicalDeviceMemoryProperties,
    /// Device and host share their memory, so that any heap is as near to the device as another.
    pub(crate) unified: bool,
    /// The driver's index of each type.
    driver_types: [u32; vk::MAX_MEMORY_TYPES],
    /// The heaps are a profile's: the driver does not know how large they are.
    pub(crate) imitated: bool,
}

impl MemoryLayout {
    /// What the driver reports.
    pub(crate) fn of_driver(kind: AdapterKind, properties: vk::PhysicalDeviceMemoryProperties) -> Self {
        Self {
            properties,
            unified: matches!(kind, AdapterKind::Integrated | AdapterKind::Software),
            driver_types: std::array::from_fn(|index| index as u32),
            imitated: false,
        }
    }

    /// The layout `shape`, of the driver's memory: each of its types is one of the driver's that can do as much, and lies as near and is
    /// cached as it if there is one. Types that the driver has no equal of are left out.
    pub(super) fn imitate(&mut self, shape: &MemoryShape) {
        let driver = self.properties;
        let largest = heaps::largest(&driver);
        let mut imitated =
            vk::PhysicalDeviceMemoryProperties { memory_heap_count: shape.heaps.len() as u32, ..Default::default() };
        for (heap, &(size, flags)) in imitated.memory_heaps.iter_mut().zip(shape.heaps) {
            let size = match size {
                HeapSize::Whole => largest,
                HeapSize::Bytes(bytes) => bytes.min(largest),
            };
            *heap = vk::MemoryHeap { size, flags };
        }
        // What a program can tell apart. Whose memory it is and what is cached are a matter of speed.
        let able_to = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        for &(property_flags, heap_index) in shape.types {
            let able = (0u32..)
                .zip(driver.memory_types_as_slice())
                .filter(|(_, ty)| ty.property_flags.contains(property_flags & able_to))
                .min_by_key(|(_, ty)| {
                    let missing = property_flags.as_raw() & !ty.property_flags.as_raw();
                    let beyond = ty.property_flags.as_raw() & !property_flags.as_raw();
                    (missing.count_ones(), beyond.count_ones())
                });
            if let Some((index, _)) = able {
                let at = imitated.memory_type_count as usize;
                imitated.memory_types[at] = vk::MemoryType { property_flags, heap_index };
                self.driver_types[at] = index;
                imitated.memory_type_count += 1;
            }
        }
        *self = Self { properties: imitated, unified: shape.unified, imitated: true, ..*self };
    }

    /// The driver's index of a type.
    pub(crate) fn driver_type(&self, index: u32) -> u32 {
        self.driver_types[index as usize]
    }

    /// Bytes of a heap.
    pub(crate) fn heap_bytes(&self, heap: u32) -> u64 {
        self.properties.memory_heaps_as_slice().get(heap as usize).map_or(0, |heap| heap.size)
    }
}
