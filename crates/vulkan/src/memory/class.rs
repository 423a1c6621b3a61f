//! The memory types for each class of memory.
//!
//! All classes but [`MemoryClass::Device`] are host-visible and host-coherent. Such memory always
//! exists: Vulkan requires of every adapter a type that is both, and of every buffer that its
//! `memoryTypeBits` have at least one such type (chapters "Device Memory" and "Resource Memory
//! Association"). Many phones also have a cached type that is not coherent. Reading it would be
//! faster, but it is not used.

use ash::vk;
use dml_gpu::MemoryClass;

use crate::adapter::MemoryLayout;

/// The memory types to try for `class`, best first, as (type, heap). The buffer with the
/// requirements `needs` may use these types, and it fits on these heaps. The types of all classes
/// but [`MemoryClass::Device`] are host-visible and host-coherent.
pub(super) fn candidates(class: MemoryClass, layout: &MemoryLayout, needs: &vk::MemoryRequirements) -> Vec<(u32, u32)> {
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
        let allowed = needs.memory_type_bits & (1 << layout.driver_type(index)) != 0;
        if !allowed || flags.intersects(avoid) || needs.size > layout.heap_bytes(ty.heap_index) {
            continue;
        }
        let local = flags.contains(Flag::DEVICE_LOCAL);
        let cached = flags.contains(Flag::HOST_CACHED);
        // Lower is better; `None` excludes the type.
        let rank = match class {
            MemoryClass::Device if local && !flags.contains(Flag::HOST_VISIBLE) => Some(0),
            MemoryClass::Device if local => Some(1),
            // On an integrated GPU, the other heap is the same memory.
            MemoryClass::Device => layout.unified.then_some(2),
            // Memory that is not coherent is never mapped.
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
    use crate::adapter::imitations;
    use dml_gpu::AdapterKind;
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
        fitting(class, &MemoryLayout::of_driver(kind, *m), 64)
    }

    fn fitting(class: MemoryClass, layout: &MemoryLayout, size: u64) -> Vec<u32> {
        let needs = vk::MemoryRequirements { size, alignment: 64, memory_type_bits: !0 };
        candidates(class, layout, &needs).into_iter().map(|(ty, _)| ty).collect()
    }

    const MAPPED: [MemoryClass; 3] = [MemoryClass::Upload, MemoryClass::Readback, MemoryClass::Staging];

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
        // Processors of phones list a cached type first. Vulkan guarantees a coherent one as well.
        let visible = Flag::HOST_VISIBLE | Flag::DEVICE_LOCAL;
        let m = memory(
            &[(visible | Flag::HOST_CACHED, 0), (visible | Flag::HOST_COHERENT, 0), (visible, 0)],
            &[(8 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL)],
        );
        for class in MAPPED {
            assert_eq!(types(class, AdapterKind::Integrated, &m), [1], "{class:?}");
        }
        assert_eq!(types(MemoryClass::Device, AdapterKind::Integrated, &m), [0, 1, 2]);
    }

    /// Every set of up to three types of every kind that Vulkan has, as long as it contains the
    /// required one.
    #[test]
    fn mapped_memory_is_coherent_and_cached_for_the_host_where_that_is_offered() {
        let visible = Flag::HOST_VISIBLE;
        let hosts = [Flag::empty(), visible, COHERENT, visible | Flag::HOST_CACHED, COHERENT | Flag::HOST_CACHED];
        let sorts: Vec<Flag> = hosts.into_iter().flat_map(|host| [host, host | Flag::DEVICE_LOCAL]).collect();
        let heaps = [(8 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL), (8 << 30, vk::MemoryHeapFlags::empty())];
        let heap = |flags: Flag| u32::from(!flags.contains(Flag::DEVICE_LOCAL));
        let mut sets = 0;
        for a in &sorts {
            for b in &sorts {
                for c in &sorts {
                    let set = [*a, *b, *c];
                    if !set.iter().any(|flags| flags.contains(COHERENT)) {
                        continue;
                    }
                    sets += 1;
                    let m = memory(&set.map(|flags| (flags, heap(flags))), &heaps);
                    for kind in [AdapterKind::Discrete, AdapterKind::Integrated, AdapterKind::Software] {
                        for class in MAPPED {
                            let found = types(class, kind, &m);
                            assert!(!found.is_empty(), "{set:?} {kind:?} {class:?}");
                            assert!(found.iter().all(|&ty| set[ty as usize].contains(COHERENT)), "{set:?} {found:?}");
                        }
                        let near = |flags: &&Flag| kind != AdapterKind::Discrete || !flags.contains(Flag::DEVICE_LOCAL);
                        let cached = COHERENT | Flag::HOST_CACHED;
                        if set.iter().filter(near).any(|flags| flags.contains(cached)) {
                            let best = types(MemoryClass::Readback, kind, &m)[0];
                            assert!(set[best as usize].contains(cached), "{set:?} {kind:?} {best}");
                        }
                    }
                }
            }
        }
        assert_eq!(sets, 10 * 10 * 10 - 6 * 6 * 6);
    }

    /// The layouts of the profiles, on a driver with one type for everything, such as a software
    /// adapter, and on a card.
    #[test]
    fn no_profile_maps_memory_that_is_not_coherent() {
        let software = memory(
            &[(COHERENT | Flag::HOST_CACHED | Flag::DEVICE_LOCAL, 0)],
            &[(64 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL)],
        );
        // None of its types is both near and cached.
        let card = memory(
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
                (256 << 20, vk::MemoryHeapFlags::DEVICE_LOCAL),
            ],
        );
        for driver in [software, card] {
            let mut not_coherent = Vec::new();
            for (name, layout) in imitations(driver) {
                let types = layout.properties.memory_types_as_slice();
                assert!(!fitting(MemoryClass::Device, &layout, 64).is_empty(), "{name}");
                for class in MAPPED {
                    let found = fitting(class, &layout, 64);
                    assert!(!found.is_empty(), "{name} {class:?}");
                    for ty in found {
                        let own = driver.memory_types[layout.driver_type(ty) as usize].property_flags;
                        assert!(types[ty as usize].property_flags.contains(COHERENT), "{name} {class:?} {ty}");
                        assert!(own.contains(COHERENT), "{name} {class:?} {ty}");
                    }
                }
                let cached = |flags: Flag| flags.contains(Flag::HOST_CACHED) && !flags.contains(COHERENT);
                if types.iter().any(|ty| cached(ty.property_flags)) {
                    not_coherent.push(name);
                }
            }
            assert_eq!(not_coherent, ["qualcomm-adreno", "arm-mali"]);
        }
    }

    #[test]
    fn a_buffer_is_not_put_on_a_heap_that_it_does_not_fit_on() {
        let m = memory(
            &[(Flag::DEVICE_LOCAL, 0), (COHERENT, 1), (COHERENT | Flag::DEVICE_LOCAL, 2)],
            &[
                (80 << 30, vk::MemoryHeapFlags::DEVICE_LOCAL),
                (64 << 30, vk::MemoryHeapFlags::empty()),
                (256 << 20, vk::MemoryHeapFlags::DEVICE_LOCAL),
            ],
        );
        let layout = MemoryLayout::of_driver(AdapterKind::Discrete, m);
        assert_eq!(fitting(MemoryClass::Upload, &layout, 256 << 20), [2, 1]);
        assert_eq!(fitting(MemoryClass::Upload, &layout, (256 << 20) + 1), [1]);
        assert_eq!(fitting(MemoryClass::Device, &layout, 72 << 30), [0]);
        assert_eq!(fitting(MemoryClass::Device, &layout, 81 << 30), [0; 0]);
    }
}
