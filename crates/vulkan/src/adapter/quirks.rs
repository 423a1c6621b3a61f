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
use super::vendors::{AMD, INTEL};
use crate::imitated_faults;

/// A fault of a driver.
pub(super) struct Quirk {
    /// What happens.
    pub(super) what: &'static str,
    /// The public report.
    pub(super) source: &'static str,
    /// What is done about it.
    pub(super) remedy: Remedy,
    /// Whether the adapter has the fault.
    has: fn(&Identity) -> bool,
}

/// What is done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Features are not used.
    Hide(&'static [Feature]),
    /// The matrix shapes are asked for [in a child process](super::child_query), and matrices are
    /// hidden if it does not answer.
    AskForMatricesInAChild,
    /// Kernels are compiled before they are launched
    /// ([`refuses_kernels`](dml_gpu::Capabilities::refuses_kernels)).
    CompileFirst,
    /// Kernels with software arithmetic for doubles have at most this many values
    /// ([`most_values`](dml_gpu::Capabilities::most_values)).
    MostValues(usize),
}

/// Radeons of GCN 1 to 4 in RADV's names, but Hawaii and Carrizo, which have a fast fused
/// multiply-add. The others have an unfused one, which flushes subnormal numbers.
const GCN: [&str; 15] = [
    "TAHITI",
    "PITCAIRN",
    "VERDE",
    "OLAND",
    "HAINAN",
    "BONAIRE",
    "KAVERI",
    "KABINI",
    "TONGA",
    "ICELAND",
    "FIJI",
    "STONEY",
    "POLARIS10",
    "POLARIS11",
    "POLARIS12",
];

const NO_MATRICES: Remedy = Remedy::Hide(&[Feature::CooperativeMatrix]);

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
        remedy: Remedy::AskForMatricesInAChild,
        has: |a| {
            let amd_s_own = [vk::DriverId::AMD_PROPRIETARY, vk::DriverId::AMD_OPEN_SOURCE].contains(&a.driver);
            a.vendor == AMD && a.kind == AdapterKind::Integrated && amd_s_own
        },
    },
    Quirk {
        // Xe2 and later have no subgroups of 8.
        what: "matrices before Xe2 are slower than without, by up to a thousand times, and wrong on DG1",
        source: "https://github.com/ggml-org/llama.cpp/pull/24404, https://github.com/ggml-org/llama.cpp/issues/12690",
        remedy: NO_MATRICES,
        has: |a| a.vendor == INTEL && a.min_subgroup == 8,
    },
    Quirk {
        what: "a multiply-add is two instructions where subnormal numbers are kept",
        source: "https://gitlab.freedesktop.org/mesa/mesa/-/blob/main/src/amd/common/ac_gpu_info.c",
        remedy: Remedy::Hide(&[Feature::DenormPreserveFloat32]),
        has: |a| a.driver == vk::DriverId::MESA_RADV && GCN.iter().any(|gpu| a.name.contains(&format!("RADV {gpu}"))),
    },
    Quirk {
        what: "matrices lose the device",
        source: "https://github.com/IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1487",
        remedy: NO_MATRICES,
        has: |a| a.driver == vk::DriverId::INTEL_PROPRIETARY_WINDOWS && a.name.contains("B70"),
    },
    Quirk {
        what: "matrices are wrong where workgroups multiply different numbers of them",
        source: "https://github.com/ggml-org/llama.cpp/pull/24406",
        remedy: NO_MATRICES,
        has: |a| a.driver == vk::DriverId::INTEL_OPEN_SOURCE_MESA && a.name.contains("(PTL)"),
    },
    Quirk {
        what: "valid kernels are refused with an unknown error",
        source: "https://github.com/ggml-org/llama.cpp/issues/8455, https://github.com/ggml-org/llama.cpp/issues/12421",
        remedy: Remedy::CompileFirst,
        has: |a| a.driver == vk::DriverId::QUALCOMM_PROPRIETARY,
    },
    Quirk {
        // Its compiler then returns no code, and its caller does not look. Kernels of 56,000 values
        // were compiled, kernels of 73,000 ended the process.
        what: "a kernel whose values take too large a stack frame ends the process",
        source: "https://github.com/google/swiftshader/blob/master/third_party/subzero/src/IceTargetLoweringX8664.cpp",
        remedy: Remedy::MostValues(60_000),
        has: |a| a.driver == vk::DriverId::GOOGLE_SWIFTSHADER && a.name.contains("(Subzero)"),
    },
];

/// The faults that tests ask for.
const IMITATED: &[Quirk] = &[
    Quirk {
        what: "a test asks for its matrix shapes in a child process",
        source: "TORCH_DML_IMITATED_FAULTS",
        remedy: Remedy::AskForMatricesInAChild,
        has: |_| imitated_faults::of_matrix_query().is_some(),
    },
    Quirk {
        what: "a test refuses kernels",
        source: "TORCH_DML_IMITATED_FAULTS",
        remedy: Remedy::CompileFirst,
        has: |_| imitated_faults::are_known(),
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
    QUIRKS_KNOWN.iter().chain(IMITATED).filter(move |quirk| looked_for && (quirk.has)(&identity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::vendors::QUALCOMM_ON_WINDOWS;

    fn adapter(vendor: u32, driver: vk::DriverId, kind: AdapterKind, name: &str, min_subgroup: u32) -> Identity {
        Identity { vendor, driver, kind, name: name.to_owned(), min_subgroup }
    }

    fn remedies(adapter: &Identity) -> Vec<Remedy> {
        QUIRKS_KNOWN.iter().filter(|q| (q.has)(adapter)).map(|q| q.remedy).collect()
    }

    #[test]
    fn rows_hit_whom_they_are_for() {
        use AdapterKind::{Discrete, Integrated, Software};
        use vk::DriverId as Driver;
        for faulty in [
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) A770 Graphics", 8),
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) Pro B70 Graphics", 16),
            adapter(INTEL, Driver::INTEL_OPEN_SOURCE_MESA, Integrated, "Intel(R) Graphics (PTL)", 16),
        ] {
            assert_eq!(remedies(&faulty), [NO_MATRICES], "{faulty:?}");
        }
        let radeon = adapter(AMD, Driver::AMD_PROPRIETARY, Integrated, "AMD Radeon(TM) 860M", 32);
        assert_eq!(remedies(&radeon), [Remedy::AskForMatricesInAChild]);
        let adreno =
            adapter(QUALCOMM_ON_WINDOWS, Driver::QUALCOMM_PROPRIETARY, Integrated, "Qualcomm(R) Adreno(TM) X1-85", 64);
        assert_eq!(remedies(&adreno), [Remedy::CompileFirst]);
        let polaris = adapter(AMD, Driver::MESA_RADV, Discrete, "AMD Radeon RX 580 Series (RADV POLARIS10)", 0);
        assert_eq!(remedies(&polaris), [Remedy::Hide(&[Feature::DenormPreserveFloat32])]);
        let swiftshader = adapter(0x1AE0, Driver::GOOGLE_SWIFTSHADER, Software, "SwiftShader Device (Subzero)", 4);
        assert_eq!(remedies(&swiftshader), [Remedy::MostValues(60_000)]);
        for sound in [
            adapter(AMD, Driver::AMD_PROPRIETARY, Discrete, "AMD Radeon RX 7900 XTX", 32),
            adapter(AMD, Driver::MESA_RADV, Integrated, "AMD Radeon 780M (RADV PHOENIX)", 32),
            adapter(AMD, Driver::MOLTENVK, Discrete, "AMD Radeon RX 5700 XT", 0),
            adapter(INTEL, Driver::INTEL_PROPRIETARY_WINDOWS, Discrete, "Intel(R) Arc(TM) B580 Graphics", 16),
            adapter(0x10DE, Driver::NVIDIA_PROPRIETARY, Discrete, "NVIDIA H200", 32),
            adapter(0x10005, Driver::MESA_LLVMPIPE, Software, "llvmpipe", 8),
        ] {
            assert_eq!(remedies(&sound), [], "{sound:?}");
        }
    }

    #[test]
    fn rows_have_sources() {
        for quirk in QUIRKS_KNOWN {
            assert!(
                quirk.source.starts_with("https://") && !quirk.what.is_empty() && quirk.remedy != Remedy::Hide(&[])
            );
        }
    }
}
