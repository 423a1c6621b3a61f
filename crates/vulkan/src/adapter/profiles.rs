//! The adapters that can be imitated, and the sources of their figures.
//!
//! "Report" is an adapter's report to vulkan.gpuinfo.org as Khronos' Vulkan-Profiles repository has
//! it in `profiles/LunarG`. Subgroup sizes are not imitated: a driver compiles for its own sizes
//! only, and apart from matrix units no kernel depends on them.

use ash::vk;
use dml_environment::PROFILE;

use super::profile::{Feature, HeapSize, Limits, MemoryShape, Profile};
use super::registers::{ADRENO, INTEL_GEN9, INTEL_XE, MALI, RADEON as RADEON_REGISTERS};
use crate::error::Error;

use Feature::{
    AtomicFloat, AtomicInt64, AtomicInt64Shared, BufferMarker, CalibratedTimestamps, CooperativeMatrix, DenormPreserve,
    Float16, Float64, FloatControls, Int8, Int16, Int64, IntegerDot, MemoryBudget, MemoryModel, ScalarBlockLayout,
    SharedMemoryLayout, Storage8, Storage16, SubgroupArithmetic, SubgroupShuffle, SubgroupSizeControl, Timestamps,
};

const LOCAL_HEAP: vk::MemoryHeapFlags = vk::MemoryHeapFlags::DEVICE_LOCAL;
const HOST_HEAP: vk::MemoryHeapFlags = vk::MemoryHeapFlags::empty();

const LOCAL: u32 = vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw();
const VISIBLE: u32 = vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw();
const COHERENT: u32 = vk::MemoryPropertyFlags::HOST_COHERENT.as_raw();
const CACHED: u32 = vk::MemoryPropertyFlags::HOST_CACHED.as_raw();

const fn ty(flags: u32, heap: u32) -> (vk::MemoryPropertyFlags, u32) {
    (vk::MemoryPropertyFlags::from_raw(flags), heap)
}

/// A card with 256 MiB visible to the host, the size of the window without Resizable BAR
/// (gpuopen.com/learn/vulkan-device-memory).
const SMALL_BAR: MemoryShape = MemoryShape {
    unified: false,
    heaps: &[(HeapSize::Whole, LOCAL_HEAP), (HeapSize::Whole, HOST_HEAP), (HeapSize::Bytes(256 << 20), LOCAL_HEAP)],
    types: &[
        ty(LOCAL, 0),
        ty(VISIBLE | COHERENT, 1),
        ty(LOCAL | VISIBLE | COHERENT, 2),
        ty(VISIBLE | COHERENT | CACHED, 1),
    ],
};

/// A card whose whole memory is visible to the host.
const LARGE_BAR: MemoryShape = MemoryShape {
    unified: false,
    heaps: &[(HeapSize::Whole, LOCAL_HEAP), (HeapSize::Whole, HOST_HEAP)],
    types: &[
        ty(LOCAL, 0),
        ty(LOCAL | VISIBLE | COHERENT, 0),
        ty(VISIBLE | COHERENT, 1),
        ty(VISIBLE | COHERENT | CACHED, 1),
    ],
};

/// Memory of a mobile processor, whose cached type is not coherent (`tu_device.cc` and
/// `panvk_physical_device.c` of Mesa).
const MOBILE: MemoryShape = MemoryShape {
    unified: true,
    heaps: &[(HeapSize::Whole, LOCAL_HEAP)],
    types: &[ty(LOCAL | VISIBLE | CACHED, 0), ty(LOCAL | VISIBLE | COHERENT, 0), ty(LOCAL, 0)],
};

/// The limits that Vulkan 1.2 requires (the table "Required Limits" of its specification).
const REQUIRED: Limits = Limits {
    invocations: 128,
    workgroup: [128, 128, 64],
    shared_memory: 16 << 10,
    // Not in the specification: the fewest of the adapters here.
    registers: Some(MALI),
    push_constants: 128,
    storage_range: 1 << 27,
    allocation: 1 << 30,
    allocations: 4096,
    timestamp_period: None,
};

/// The limits of AMD's driver for Windows.
const RADEON: Limits = Limits {
    invocations: 1024,
    workgroup: [1024; 3],
    shared_memory: 32 << 10,
    registers: Some(RADEON_REGISTERS),
    push_constants: 128,
    storage_range: u32::MAX,
    allocation: 2 << 30,
    allocations: 4096,
    timestamp_period: Some(10.0),
};

pub(super) static PROFILES: &[Profile] = &[
    Profile {
        name: "amd-rdna2",
        source: "report: AMD Radeon RX 6800 XT, driver 2.0.283, Windows 11; memory as without Resizable BAR",
        api: vk::API_VERSION_1_3,
        lacks: &[CooperativeMatrix],
        limits: RADEON,
        memory: Some(SMALL_BAR),
    },
    Profile {
        name: "amd-rdna3",
        source: "report: AMD Radeon RX 7800 XT, driver 2.0.294, Windows 11",
        api: vk::API_VERSION_1_3,
        lacks: &[],
        limits: RADEON,
        memory: Some(LARGE_BAR),
    },
    Profile {
        name: "intel-gen9",
        source: "report: Intel HD Graphics 620 (KBL GT2), Mesa 26.1.2, Debian",
        api: vk::API_VERSION_1_3,
        lacks: &[CooperativeMatrix, AtomicInt64Shared, AtomicFloat],
        limits: Limits {
            shared_memory: 48 << 10,
            registers: Some(INTEL_GEN9),
            push_constants: 256,
            allocation: 4 << 30,
            allocations: u32::MAX,
            timestamp_period: Some(83.3333),
            ..RADEON
        },
        memory: Some(MemoryShape {
            unified: true,
            heaps: &[(HeapSize::Whole, LOCAL_HEAP)],
            types: &[ty(LOCAL | VISIBLE | COHERENT | CACHED, 0)],
        }),
    },
    Profile {
        name: "intel-arc",
        source: "report: Intel Arc A770 Graphics, driver 0.405.1234, Windows 11",
        api: vk::API_VERSION_1_3,
        lacks: &[Float64, AtomicInt64Shared, CooperativeMatrix, BufferMarker],
        limits: Limits {
            workgroup: [1024, 1024, 64],
            registers: Some(INTEL_XE),
            push_constants: 256,
            storage_range: 1_073_741_820,
            allocation: 4 << 30,
            allocations: 4_425_843,
            timestamp_period: Some(52.0833),
            ..RADEON
        },
        memory: Some(LARGE_BAR),
    },
    Profile {
        name: "qualcomm-adreno",
        source: "Mesa's tu_device.cc: no float64, the a702's 512 invocations, timestamps of 19.2 MHz, features that only \
                 newer chips have; github.com/gpuweb/gpuweb/issues/2832: the Adreno 610's 16 KiB of shared memory",
        api: vk::API_VERSION_1_3,
        lacks: &[
            Float64,
            AtomicInt64,
            AtomicInt64Shared,
            AtomicFloat,
            Storage8,
            Storage16,
            CooperativeMatrix,
            CalibratedTimestamps,
            BufferMarker,
        ],
        limits: Limits {
            invocations: 512,
            workgroup: [512, 512, 64],
            shared_memory: 16 << 10,
            registers: Some(ADRENO),
            allocation: 4 << 30,
            allocations: u32::MAX,
            storage_range: 1 << 27,
            timestamp_period: Some(52.0833),
            ..RADEON
        },
        memory: Some(MOBILE),
    },
    Profile {
        name: "arm-mali",
        source: "Mesa's panvk_vX_physical_device.c before architecture 9: no float64, no 64-bit atomics, 32 KiB of shared \
                 memory; Khronos' VP_ANDROID_16_requirements.json: 256 invocations, 8-bit types not required",
        api: vk::API_VERSION_1_2,
        lacks: &[
            Float64,
            Float16,
            AtomicInt64,
            AtomicInt64Shared,
            AtomicFloat,
            Int8,
            Storage8,
            CooperativeMatrix,
            Timestamps,
            CalibratedTimestamps,
            BufferMarker,
        ],
        limits: Limits {
            invocations: 256,
            workgroup: [256, 256, 64],
            registers: Some(MALI),
            allocation: u32::MAX as u64,
            timestamp_period: None,
            ..RADEON
        },
        memory: Some(MOBILE),
    },
    Profile {
        name: "moltenvk",
        source: "report: Apple M1, MoltenVK 0.2.2209, macOS 26.5.1",
        api: vk::API_VERSION_1_3,
        lacks: &[
            Float64,
            AtomicInt64,
            AtomicInt64Shared,
            CooperativeMatrix,
            SharedMemoryLayout,
            DenormPreserve,
            BufferMarker,
        ],
        limits: Limits {
            registers: None,
            push_constants: 4096,
            allocation: 4 << 30,
            allocations: 1 << 30,
            timestamp_period: None,
            ..RADEON
        },
        memory: Some(MemoryShape {
            unified: true,
            heaps: &[(HeapSize::Whole, LOCAL_HEAP)],
            types: &[ty(LOCAL, 0), ty(LOCAL | VISIBLE | COHERENT | CACHED, 0)],
        }),
    },
    Profile {
        name: "minimum",
        source: "Vulkan 1.2's specification, \"Required Limits\" and \"Feature Requirements\", with buffer addresses and \
                 timeline semaphores",
        api: vk::API_VERSION_1_2,
        lacks: &[
            Float64,
            Float16,
            Int64,
            Int16,
            Int8,
            Storage16,
            Storage8,
            AtomicInt64,
            AtomicInt64Shared,
            AtomicFloat,
            SubgroupArithmetic,
            SubgroupShuffle,
            SubgroupSizeControl,
            CooperativeMatrix,
            IntegerDot,
            MemoryModel,
            SharedMemoryLayout,
            ScalarBlockLayout,
            FloatControls,
            Timestamps,
            CalibratedTimestamps,
            MemoryBudget,
            BufferMarker,
        ],
        limits: REQUIRED,
        memory: Some(SMALL_BAR),
    },
];

impl Profile {
    /// The profile that `TORCH_DML_PROFILE` names; `None` if it is not set.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown name.
    pub(super) fn chosen() -> Result<Option<&'static Self>, Error> {
        PROFILE.get().map(|name| Self::named(&name)).transpose()
    }

    pub(super) fn named(name: &str) -> Result<&'static Self, Error> {
        PROFILES.iter().find(|profile| profile.name == name).ok_or_else(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            Error::Invalid {
                call: "TORCH_DML_PROFILE",
                what: format!("there is no profile {name:?}; there are {}", names.join(", ")),
            }
        })
    }
}

/// The memory of each profile that defines it, on a driver's memory.
#[cfg(test)]
pub(crate) fn imitations(
    driver: vk::PhysicalDeviceMemoryProperties,
) -> impl Iterator<Item = (&'static str, super::memory::MemoryLayout)> {
    PROFILES.iter().filter_map(move |profile| {
        let mut layout = super::memory::MemoryLayout::of_driver(dml_gpu::AdapterKind::Software, driver);
        layout.imitate(profile.memory.as_ref()?);
        Some((profile.name, layout))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Profile::named("gtx-9090").map(|p| p.name).expect_err("there is no such profile").to_string();
        assert!(error.starts_with("TORCH_DML_PROFILE: there is no profile \"gtx-9090\"; there are "), "{error}");
        for profile in PROFILES {
            assert!(error.contains(profile.name), "{error}");
        }
    }

    /// The limits that Vulkan 1.2 requires of every adapter (the table "Required Limits" of the
    /// specification).
    #[test]
    fn no_profile_goes_below_what_vulkan_requires() {
        for Profile { name, limits, memory, .. } in PROFILES {
            assert!(limits.invocations >= 128 && limits.workgroup >= [128, 128, 64], "{name}");
            assert!(limits.shared_memory >= 16384 && limits.push_constants >= 128, "{name}");
            assert!(limits.storage_range >= 1 << 27 && limits.allocation >= 1 << 30, "{name}");
            assert!(limits.allocations >= 4096, "{name}");
            let Some(memory) = memory else { continue };
            let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let has = |flags| memory.types.iter().any(|(ty, _)| ty.contains(flags));
            assert!(has(coherent) && has(vk::MemoryPropertyFlags::DEVICE_LOCAL), "{name}");
            assert!(memory.types.iter().all(|&(_, heap)| (heap as usize) < memory.heaps.len()), "{name}");
        }
    }

    #[test]
    fn names_are_unlike_and_figures_have_sources() {
        for (i, profile) in PROFILES.iter().enumerate() {
            assert!(PROFILES[..i].iter().all(|other| other.name != profile.name));
            assert!(!profile.source.is_empty(), "{}", profile.name);
        }
    }
}
