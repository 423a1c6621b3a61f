//! Known faults of drivers, and the features that are not used because of them. Each row names the
//! public report.
//!
//! A row is for faults that no check at run time finds in time: the driver ends the process, loses
//! the device, or passes a small test. Wrong products of a matrix shape are found by the operators'
//! self-test at the first use.

use ash::vk;
use dml_environment::QUIRKS;
use dml_gpu::AdapterKind;

use super::kind::kind_of;
use super::profile::Feature;
use super::properties::Properties;

const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;

/// A fault of a driver.
pub(super) struct Quirk {
    /// What happens.
    pub(super) what: &'static str,
    /// The public report.
    pub(super) source: &'static str,
    /// The features to hide.
    pub(super) hides: &'static [Feature],
    /// Whether the adapter has the fault.
    has: fn(&Identity) -> bool,
}

/// The driver's description of an adapter, as far as it identifies faults.
#[derive(Debug, Clone)]
struct Identity {
    vendor: u32,
    driver: vk::DriverId,
    kind: AdapterKind,
    name: String,
    /// The smallest subgroup size that a pipeline may ask for; 0 if none.
    min_subgroup: u32,
}

const QUIRKS_KNOWN: &[Quirk] = &[
    Quirk {
        what: "the query of its matrix shapes ends the process",
        source: "https://github.com/GPUOpen-Drivers/AMDVLK/issues/422",
        hides: &[Feature::CooperativeMatrix],
        has: |a| {
            let amd_s_own = [vk::DriverId::AMD_PROPRIETARY, vk::DriverId::AMD_OPEN_SOURCE].contains(&a.driver);
            a.vendor == AMD && a.kind == AdapterKind::Integrated && amd_s_own
        },
    },
    Quirk {
        // Xe2 and later have no subgroups of 8.
        what: "matrices before Xe2 are slower than without, by up to a thousand times, and wrong on DG1",
        source: "https://github.com/ggml-org/llama.cpp/pull/24404, https://github.com/ggml-org/llama.cpp/issues/12690",
        hides: &[Feature::CooperativeMatrix],
        has: |a| a.vendor == INTEL && a.min_subgroup == 8,
    },
    Quirk {
        what: "matrices lose the device",
        source: "https://github.com/IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1487",
        hides: &[Feature::CooperativeMatrix],
        has: |a| a.driver == vk::DriverId::INTEL_PROPRIETARY_WINDOWS && a.name.contains("B70"),
    },
    Quirk {
        what: "matrices are wrong where workgroups multiply different numbers of them",
        source: "https://github.com/ggml-org/llama.cpp/pull/24406",
        hides: &[Feature::CooperativeMatrix],
        has: |a| a.driver == vk::DriverId::INTEL_OPEN_SOURCE_MESA && a.name.contains("(PTL)"),
    },
];

/// The faults of an adapter; none with `TORCH_DML_QUIRKS=0`.
pub(super) fn of(properties: &Properties) -> impl Iterator<Item = &'static Quirk> + use<> {
    let identity = Identity {
        vendor: properties.core.vendor_id,
        driver: properties.v12.driver_id,
        kind: kind_of(properties.core.device_type),
        name: properties.core.device_name_as_c_str().unwrap_or_default().to_string_lossy().into_owned(),
        min_subgroup: properties.subgroup.min_subgroup_size,
    };
    let looked_for = QUIRKS.get() != Some(false);
    QUIRKS_KNOWN.iter().filter(move |quirk| looked_for && (quirk.has)(&identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(vendor: u32, driver: vk::DriverId, kind: AdapterKind, name: &str, min_subgroup: u32) -> Identity {
        Identity { vendor, driver, kind, name: name.to_owned(), min_subgroup }
    }

    fn hidden(adapter: &Identity) -> Vec<Feature> {
        QUIRKS_KNOWN.iter().filter(|q| (q.has)(adapter)).flat_map(|q| q.hides.iter().copied()).collect()
    }

    #[test]
    fn rows_hit_whom_they_are_for() {
        use AdapterKind::{Discrete, Integrated, Software};
        use vk::DriverId as Driver;
        let matrix = vec![Feature::CooperativeMatrix];
        for faulty in [
            adapter(AMD, Driver::AMD_PROPRIETARY, Integrated, "AMD Radeon(TM) 860M", 32),
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) A770 Graphics", 8),
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) Pro B70 Graphics", 16),
            adapter(INTEL, Driver::INTEL_OPEN_SOURCE_MESA, Integrated, "Intel(R) Graphics (PTL)", 16),
        ] {
            assert_eq!(hidden(&faulty), matrix, "{faulty:?}");
        }
        for sound in [
            adapter(AMD, Driver::AMD_PROPRIETARY, Discrete, "AMD Radeon RX 7900 XTX", 32),
            adapter(AMD, Driver::MESA_RADV, Integrated, "AMD Radeon 780M (RADV PHOENIX)", 32),
            adapter(AMD, Driver::MOLTENVK, Discrete, "AMD Radeon RX 5700 XT", 0),
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) B580 Graphics", 16),
            adapter(0x10DE, Driver::NVIDIA_PROPRIETARY, Discrete, "NVIDIA H200", 32),
            adapter(0x10005, Driver::MESA_LLVMPIPE, Software, "llvmpipe", 8),
        ] {
            assert_eq!(hidden(&sound), [], "{sound:?}");
        }
    }

    #[test]
    fn rows_have_sources() {
        for quirk in QUIRKS_KNOWN {
            assert!(quirk.source.starts_with("https://") && !quirk.what.is_empty() && !quirk.hides.is_empty());
        }
    }
}
