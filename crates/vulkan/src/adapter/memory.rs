//! An adapter's heaps and memory types, and the driver's indices of these types.

use ash::vk;
use dml_gpu::AdapterKind;

use super::heaps;
use super::profile::{HeapSize, MemoryShape};

/// An adapter's heaps and memory types. They are the driver's, unless a profile imitates others.
pub(crate) struct MemoryLayout {
    pub(crate) properties: vk::PhysicalDeviceMemoryProperties,
    /// Device and host share their memory, so that every heap is equally near to the device.
    pub(crate) unified: bool,
    /// The driver's index of each type.
    driver_types: [u32; vk::MAX_MEMORY_TYPES],
    /// The heaps come from a profile: the driver does not know their sizes.
    pub(crate) imitated: bool,
}

impl MemoryLayout {
    /// The driver's report.
    pub(crate) fn of_driver(kind: AdapterKind, properties: vk::PhysicalDeviceMemoryProperties) -> Self {
        Self {
            properties,
            unified: matches!(kind, AdapterKind::Integrated | AdapterKind::Software),
            driver_types: std::array::from_fn(|index| index as u32),
            imitated: false,
        }
    }

    /// The layout `shape` on the driver's memory. Each of its types is mapped to a type of the
    /// driver with at least the same properties, if possible one that is equally near to the device
    /// and equally cached. Types without a counterpart are left out.
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
        // Properties that a program can observe. Location and caching only affect speed.
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
