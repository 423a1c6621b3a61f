//! The registers of an adapter, by its vendor.

use dml_gpu::RegisterFile;

use super::properties::Properties;
use super::vendors::{AMD, ARM, INTEL, QUALCOMM, QUALCOMM_ON_WINDOWS};

/// Intel's before Xe2: 128 registers of 32 bytes a thread, which runs a subgroup.
pub(super) const INTEL_XE: RegisterFile = RegisterFile {
    subgroup_words: 128 * 8,
    workgroup_words: u32::MAX,
    smallest_subgroup: 8,
    max_subgroups: 64,
    others: 58,
    position: 4,
    whole_rows: false,
    shared_values_apart: false,
    sums_take_wide_constants: true,
};

/// Intel's Gen9, which has 64-bit arithmetic, but no constants beside it.
pub(super) const INTEL_GEN9: RegisterFile = RegisterFile { sums_take_wide_constants: false, ..INTEL_XE };

/// Arm's: 64 registers an invocation, or half the threads.
pub(super) const MALI: RegisterFile = RegisterFile { subgroup_words: 64 * 16, smallest_subgroup: 16, ..INTEL_XE };

/// AMD's.
pub(super) const RADEON: RegisterFile = RegisterFile {
    subgroup_words: 256 * 64,
    workgroup_words: 2 * 512 * 64,
    smallest_subgroup: 64,
    max_subgroups: u32::MAX,
    others: 28,
    position: 2,
    whole_rows: true,
    shared_values_apart: true,
    sums_take_wide_constants: true,
};

/// Qualcomm's. Compilers give an invocation up to 192 registers, but then only two subgroups run at
/// a time, which hides little latency.
pub(super) const ADRENO: RegisterFile = RegisterFile {
    subgroup_words: 128 * 64,
    workgroup_words: 96 * 4 * 128,
    smallest_subgroup: 64,
    max_subgroups: u32::MAX,
    shared_values_apart: true,
    ..INTEL_XE
};

/// Words of the register file of an Adreno: of the 643 to the 699 two thirds of the others'
/// (Mesa's freedreno_devices.py).
fn adreno_words(name: &str) -> u32 {
    let digits: String = name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(643..=699) => ADRENO.workgroup_words / 3 * 2,
        _ => ADRENO.workgroup_words,
    }
}

/// Whether one of Intel's GPUs is a Gen9: later ones with float64 run 64 subgroups of a workgroup.
fn is_gen9(properties: &Properties, float64: bool) -> bool {
    float64 && (1..64).contains(&properties.subgroup.max_compute_workgroup_subgroups)
}

/// `float64`: whether the adapter computes with it. `sizes`: the smallest and the largest subgroup
/// size, if a pipeline may ask for one.
pub(super) fn of(properties: &Properties, float64: bool, sizes: Option<(u32, u32)>) -> Option<RegisterFile> {
    if properties.imitated_registers.is_some() {
        return properties.imitated_registers;
    }
    let own = properties.v11.subgroup_size;
    let smallest_subgroup = sizes.map_or(own, |(smallest, _)| smallest);
    // Without the feature, the number of subgroups is that of Vulkan's smallest adapters.
    let max_subgroups = sizes.map_or(8, |_| properties.subgroup.max_compute_workgroup_subgroups.max(1));
    match properties.core.vendor_id {
        INTEL => {
            // Registers have 64 bytes from Xe2 on, which has no subgroups of 8.
            let subgroup_words = if smallest_subgroup >= 16 { 128 * 16 } else { INTEL_XE.subgroup_words };
            let generation = if is_gen9(properties, float64) { INTEL_GEN9 } else { INTEL_XE };
            Some(RegisterFile { subgroup_words, smallest_subgroup, max_subgroups, ..generation })
        }
        ARM => Some(RegisterFile { subgroup_words: 64 * smallest_subgroup, smallest_subgroup, max_subgroups, ..MALI }),
        QUALCOMM | QUALCOMM_ON_WINDOWS => {
            let name = properties.core.device_name_as_c_str().unwrap_or_default().to_string_lossy();
            Some(RegisterFile { workgroup_words: adreno_words(&name), ..ADRENO })
        }
        AMD => properties.amd_registers.map(|workgroup_words| RegisterFile {
            subgroup_words: 256 * own,
            workgroup_words,
            smallest_subgroup: own,
            ..RADEON
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adrenos_with_the_smaller_register_file_are_known_by_name() {
        let (whole, smaller) = (ADRENO.workgroup_words, ADRENO.workgroup_words / 3 * 2);
        for (name, words) in [
            ("Turnip Adreno (TM) 630", whole),
            ("Adreno (TM) 660", smaller),
            ("Adreno (TM) 690", smaller),
            ("Adreno (TM) 740", whole),
            ("Qualcomm(R) Adreno(TM) X1-85 GPU", whole),
            ("", whole),
        ] {
            assert_eq!(adreno_words(name), words, "{name}");
        }
        let small = RegisterFile { workgroup_words: smaller, ..ADRENO };
        assert_eq!([64, 512, 1024].map(|n| ADRENO.per_invocation(n)), [128, 96, 48]);
        assert_eq!([64, 512, 1024].map(|n| small.per_invocation(n)), [128, 64, 32]);
        assert!(ADRENO.are_few() && !RADEON.are_few());
    }
}
